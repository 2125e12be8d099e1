package cli

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// explained is a request for an explanation as it is sent.
type explained struct {
	Query       string                     `json:"query"`
	Parameters  map[string]json.RawMessage `json:"parameters,omitempty"`
	Limit       int                        `json:"limit,omitempty"`
	Nodes       int                        `json:"nodes,omitempty"`
	Levels      int                        `json:"levels,omitempty"`
	MinRevision uint64                     `json:"min_revision,omitempty"`
	DeadlineMS  int64                      `json:"deadline_ms,omitempty"`
}

func whyCommand() *cobra.Command {
	return explainCommand("why", "Explain why a query has its rows",
		`Explain why a query has its first rows: a proof from facts, rule by rule. Each row
is followed by the rule that gives it, with its line in the program, and the rows
and conditions that the rule needs.`,
		`  heddle why shop '?hop2(1, 3)'
  heddle why shop '?hop2($from, Z)' --param from=1 --limit 3`,
		func(c *cobra.Command, e *explained) {
			c.Flags().IntVar(&e.Limit, "limit", 0, "explain so many rows (default 1)")
		})
}

func whyNotCommand() *cobra.Command {
	return explainCommand("why-not", "Explain why a query has no row",
		`Explain why a query has no row: for each rule that could give one, the first
condition that fails, with the values for which it does. A row of a rule that is
missing is followed in turn.`,
		`  heddle why-not shop '?hop2(1, 9)'
  heddle why-not shop '?hop2(1, 9)' --levels 1`,
		func(c *cobra.Command, e *explained) {
			c.Flags().IntVar(&e.Levels, "levels", 0, "follow missing rows so deep (default 4)")
		})
}

// explainCommand is one of the two commands; its route has its name.
func explainCommand(name, short, long, example string,
	flags func(c *cobra.Command, e *explained),
) *cobra.Command {
	var parameters []string
	var deadline time.Duration
	var e explained
	c := newCommand(name+" GRAPH QUERY", short, long, example, 2,
		func(c *command, server *client, args []string) error {
			var err error
			if e.Parameters, err = parameterValues(parameters); err != nil {
				return err
			}
			e.Query, e.DeadlineMS = args[1], deadline.Milliseconds()
			text, err := json.Marshal(e)
			if err != nil {
				return &Error{Code: ExitUsage, Text: err.Error()}
			}
			var answer struct {
				Revision uint64 `json:"revision"`
				Text     string `json:"text"`
			}
			body, err := server.get(c.Context(), request{
				method: "POST", path: "/v1/graphs/" + url.PathEscape(args[0]) + "/" + name,
				media: "application/json", body: bytes.NewReader(text),
			}, &answer)
			if err != nil {
				return ofCommandLine(err)
			}
			if c.asJSON {
				return c.printJSON(body)
			}
			return c.print("%s(at revision %s)\n", plainLines(answer.Text),
				strconv.FormatUint(answer.Revision, 10))
		})
	f := c.Flags()
	f.StringArrayVarP(&parameters, "param", "p", nil,
		"a parameter's value as NAME=VALUE; may be repeated")
	f.IntVar(&e.Nodes, "nodes", 0, "print at most so many rows (default 200)")
	f.Uint64Var(&e.MinRevision, "min-revision", 0, "wait until the graph has reached this revision")
	f.DurationVar(&deadline, "deadline", 0,
		"give up after this time, such as 500ms (default: the server's limit)")
	flags(c.Command, &e)
	return c.Command
}

// plainLines is a text for a terminal: lines without control characters.
func plainLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || strconv.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, s)
}
