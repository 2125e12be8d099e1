package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine/value"
)

// asked is a query as it is sent.
type asked struct {
	Query       string                     `json:"query"`
	Parameters  map[string]json.RawMessage `json:"parameters,omitempty"`
	Limit       int                        `json:"limit,omitempty"`
	MinRevision uint64                     `json:"min_revision,omitempty"`
	DeadlineMS  int64                      `json:"deadline_ms,omitempty"`
}

// answered is a query's answer. Cells stay as the server spelled them, so that
// integers stay exact.
type answered struct {
	Revision  uint64              `json:"revision"`
	Columns   []admin.ColumnInfo  `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows"`
	Truncated bool                `json:"truncated"`
	Errors    []admin.RuleErrors  `json:"errors"` // why rows may be missing
}

func queryCommand() *cobra.Command {
	var parameters []string
	var deadline time.Duration
	var q asked
	c := newCommand("query GRAPH QUERY", "Ask a query once",
		`Ask a query once and print its rows. QUERY begins with ?; values for its $names
are given with --param NAME=VALUE. A value that looks like a number, true or
false is one; to give such a text as a string, put it in double quotes:
--param 'sku="42"'.`,
		`  heddle query shop '?edge(1, Y), Y > 7'
  heddle query shop '?edge($from, Y)' --param from=1
  heddle query shop '?edge(X, Y)' --limit 10 --json`,
		2, func(c *command, server *client, args []string) error {
			flags := c.Flags()
			if flags.Changed("limit") && q.Limit < 1 {
				return usageError(c.Command, fmt.Sprintf("--limit %d: expected 1 or more", q.Limit))
			}
			if flags.Changed("deadline") && deadline < time.Millisecond {
				return usageError(c.Command,
					fmt.Sprintf("--deadline %v: expected 1ms or more", deadline))
			}
			q.Query, q.DeadlineMS = args[1], deadline.Milliseconds()
			var err error
			if q.Parameters, err = parameterValues(parameters); err != nil {
				return err
			}
			text, err := json.Marshal(q)
			if err != nil {
				return &Error{Code: ExitUsage, Text: err.Error()}
			}
			var answer answered
			body, err := server.get(c.Context(), request{
				method: "POST", path: "/v1/graphs/" + url.PathEscape(args[0]) + "/query",
				media: "application/json", body: bytes.NewReader(text),
			}, &answer)
			if err != nil {
				return ofCommandLine(err)
			}
			if c.asJSON {
				return c.printJSON(body)
			}
			return c.printAnswer(&answer)
		})
	f := c.Flags()
	f.StringArrayVarP(&parameters, "param", "p", nil,
		"a parameter's value as NAME=VALUE; may be repeated")
	f.IntVar(&q.Limit, "limit", 0, "print at most so many rows (default: the server's limit)")
	f.Uint64Var(&q.MinRevision, "min-revision", 0, "wait until the graph has reached this revision")
	f.DurationVar(&deadline, "deadline", 0,
		"give up after this time, such as 500ms (default: the server's limit)")
	return c.Command
}

// parameterValues reads the values of --param.
func parameterValues(given []string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, p := range given {
		name, v, ok := strings.Cut(p, "=")
		if name = strings.TrimPrefix(name, "$"); !ok || name == "" {
			return nil, &Error{
				Code: ExitUsage,
				Text: fmt.Sprintf("--param %q: expected NAME=VALUE", p),
			}
		}
		if values[name] = parameterValue(v); values[name] == nil {
			return nil, &Error{
				Code: ExitUsage,
				Text: fmt.Sprintf("--param %q: the string is not closed", p),
				Hint: `a value that begins with " is a string as JSON spells it`,
			}
		}
	}
	return values, nil
}

// ofCommandLine words what the server says of the request's members as what is
// wrong with the command line that they come from.
func ofCommandLine(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Problem == nil {
		return err
	}
	switch p := e.Problem; {
	case p.Code == "parameters_invalid":
		e.Code = ExitUsage
	case p.Code == "json_invalid" && len(p.Errors) == 1:
		e.Code = ExitUsage
		p.Detail = strings.NewReplacer(`"limit"`, "--limit", `"min_revision"`, "--min-revision",
			`"deadline_ms"`, "--deadline in milliseconds").Replace(p.Errors[0].Message)
		p.Errors, p.ErrorCount = nil, 0
	}
	return err
}

// parameterValue is the JSON of a value from the command line: a number, bool or
// quoted string as it stands, anything else as a string; nil if a quoted string
// is not one.
func parameterValue(text string) json.RawMessage {
	if json.Valid([]byte(text)) && !strings.ContainsAny(text[:1], "{[n") {
		return json.RawMessage(text)
	}
	if strings.HasPrefix(text, `"`) {
		return nil
	}
	// Strings can always be encoded.
	quoted, _ := json.Marshal(text)
	return quoted
}

// printAnswer prints rows as a table and what there is to know about them below.
func (c *command) printAnswer(a *answered) error {
	widths := make([]int, len(a.Columns))
	header := make([]string, len(a.Columns))
	for i, column := range a.Columns {
		header[i] = column.Name
		widths[i] = utf8.RuneCountInString(column.Name)
	}
	rows := make([][]string, len(a.Rows))
	for i, row := range a.Rows {
		rows[i] = make([]string, len(header))
		for j := range header {
			if j < len(row) {
				rows[i][j] = cellText(a.Columns[j].Type, row[j])
			}
			widths[j] = max(widths[j], utf8.RuneCountInString(rows[i][j]))
		}
	}
	var b strings.Builder
	if len(header) > 0 {
		writeLine(&b, header, widths, a.Columns)
	}
	for _, row := range rows {
		if len(row) > 0 {
			writeLine(&b, row, widths, a.Columns)
		}
	}
	fmt.Fprintf(&b, "(%s at revision %d", counted(len(rows), "row"), a.Revision)
	if a.Truncated {
		b.WriteString("; there are more")
	}
	b.WriteString(")\n")
	for i := range a.Errors {
		e := &a.Errors[i]
		b.WriteString("rows may be missing: " + notComputed(e))
		if len(e.Rows) > 0 {
			b.WriteString(": " + rowError(&e.Rows[0]))
		}
		b.WriteByte('\n')
	}
	return c.print("%s", b.String())
}

// writeLine writes cells in columns: numbers to the right, everything else to the left.
func writeLine(b *strings.Builder, cells []string, widths []int, columns []admin.ColumnInfo) {
	for i, cell := range cells {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		number := columns[i].Type == "int" || columns[i].Type == "float"
		switch {
		case number:
			b.WriteString(pad + cell)
		case i == len(cells)-1:
			b.WriteString(cell)
		default:
			b.WriteString(cell + pad)
		}
		if i < len(cells)-1 {
			b.WriteString("  ")
		}
	}
	b.WriteByte('\n')
}

// cellText is a cell for a terminal: a time by RFC 3339, a string without its quotes,
// and with control characters escaped, so that facts cannot steer the terminal.
func cellText(kind string, cell json.RawMessage) string {
	var s string
	if kind == "timestamp" {
		// Far from now it is a string of digits.
		ms, err := strconv.ParseInt(strings.Trim(string(cell), `"`), 10, 64)
		if err == nil {
			return timeText(ms)
		}
	}
	if string(cell) == "null" || json.Unmarshal(cell, &s) != nil {
		return string(cell)
	}
	return plainText(s)
}

func timeText(ms int64) string {
	if text, ok := value.FormatTime(ms); ok {
		return text
	}
	return strconv.FormatInt(ms, 10)
}

// plainText is a string for a terminal: one line without control characters.
func plainText(s string) string {
	quoted := strconv.Quote(s)
	if inner := quoted[1 : len(quoted)-1]; inner != s && strings.ContainsFunc(s, func(r rune) bool {
		return !strconv.IsPrint(r)
	}) {
		return inner
	}
	return s
}
