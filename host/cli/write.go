package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
)

// deletion is an argument that begins with the deletion of a fact.
var deletion = regexp.MustCompile(`^-[a-z][A-Za-z0-9_]*\s*[(\[]`)

// negative is an argument that begins with a negative number, shielded or not.
var negative = regexp.MustCompile(`^ *-[0-9.]`)

// Arguments prepares the command line's arguments for its parser, which would
// take a program that begins with a deletion, such as -edge(1, 2), and a key such
// as -5 for flags: a space in front makes them arguments, and write, call and watch
// take the space off again.
func Arguments(args []string) []string {
	prepared := slices.Clone(args)
	keyed := len(args) > 0 && (args[0] == "watch" || args[0] == "call")
	for i, a := range prepared {
		isKey := keyed && negative.MatchString(a) && !takesNext(args[i-1])
		if isKey || deletion.MatchString(a) {
			prepared[i] = " " + a
		}
	}
	return prepared
}

// takesNext reports whether the argument behind this one is its value.
func takesNext(flag string) bool {
	return strings.HasPrefix(flag, "--") && flag != "--" && !strings.Contains(flag, "=") &&
		flag != "--json" && flag != "--once"
}

// unshielded takes off the spaces that Arguments put in front of keys.
func unshielded(keys []string) []string {
	plain := slices.Clone(keys)
	for i, k := range plain {
		if strings.HasPrefix(k, " ") && negative.MatchString(k) {
			plain[i] = k[1:]
		}
	}
	return plain
}

func writeCommand() *cobra.Command {
	var opt writeOptions
	c := newCommand("write GRAPH PROGRAM", "Write facts in one transaction",
		`Write facts in one transaction: all of it or nothing, durable when the command
ends. PROGRAM holds +relation(…) to insert and -relation(…) to delete, one
statement a line, several rows as +relation[(…), (…)]. Behind <- stands a
condition: the statement is done for each of its rows. PROGRAM may be - for
standard input. A row that is there already, or is not there, is no error. With
--expect-revision nothing is written unless the graph is at that revision.`,
		`  heddle write shop '+edge(1, 2)'
  heddle write shop '-edge(1, 2)'
  heddle write shop '+edge[(1, 2), (2, 3)]'
  heddle write shop '-edge(X, Y) <- edge(X, Y), Y > 7'
  heddle write shop '-edge(1, X), +edge(1, 9) <- edge(1, X)' --expect-revision 12
  heddle write shop - < facts.heddle`,
		2, func(c *command, server *client, args []string) error {
			text := []byte(strings.TrimPrefix(args[1], " "))
			if args[1] == "-" {
				var err error
				if text, err = io.ReadAll(c.InOrStdin()); err != nil {
					return &Error{Code: ExitUsage, Text: err.Error()}
				}
			}
			_, err := c.transact(server, request{
				method: "POST", path: "/v1/graphs/" + url.PathEscape(args[0]) + "/transactions",
				media: "text/plain; charset=utf-8", body: bytes.NewReader(text),
			}, &opt)
			return err
		})
	opt.addFlags(c)
	return c.Command
}

// writeOptions are what every command that writes facts may be told.
type writeOptions struct {
	key    string // idempotency key, "" for none
	expect uint64
	query  url.Values // of the request, apart from the expected revision
}

const expectFlag = "expect-revision"

func (o *writeOptions) addFlags(c *command) {
	c.Flags().StringVar(&o.key, "idempotency-key", "",
		"any text; repeating the command with it writes nothing twice")
	c.Flags().Uint64Var(&o.expect, expectFlag, 0,
		"write only if the graph is at this revision, that of a query or write before")
}

// transact sends a request that a receipt answers, and prints it.
func (c *command) transact(server *client, r request, opt *writeOptions) (*admin.Receipt, error) {
	query := maps.Clone(opt.query)
	if c.Flags().Changed(expectFlag) {
		if query == nil {
			query = url.Values{}
		}
		query.Set("expect_revision", strconv.FormatUint(opt.expect, 10))
	}
	if len(query) > 0 {
		r.path += "?" + query.Encode()
	}
	if opt.key != "" {
		r.header = maps.Clone(r.header)
		if r.header == nil {
			r.header = map[string]string{}
		}
		r.header["Idempotency-Key"] = opt.key
	}
	receipt := new(admin.Receipt)
	body, err := server.get(c.Context(), r, receipt)
	if err != nil {
		return nil, err
	}
	if c.asJSON {
		return receipt, c.printJSON(body)
	}
	return receipt, c.printReceipt(receipt)
}

// printReceipt prints what was written, of several statements by each.
func (c *command) printReceipt(r *admin.Receipt) error {
	suffix := ""
	if r.Replayed {
		suffix = " (written before, under the same idempotency key)"
	}
	err := c.print("revision %d: %s inserted, %d deleted%s\n",
		r.Revision, counted(r.Inserted, "row"), r.Deleted, suffix)
	if len(r.Statements) < 2 || err != nil {
		return err
	}
	for i, s := range r.Statements {
		what := fmt.Sprintf("%s inserted, %d deleted", counted(s.Inserted, "row"), s.Deleted)
		if s.Rows == 0 {
			what = "no row met its condition"
		}
		if err := c.print("  statement %d: %s\n", i+1, what); err != nil {
			return err
		}
	}
	return nil
}

// counted spells a number with its noun: 1 row, 2 rows.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

func loadCommand() *cobra.Command {
	var opt writeOptions
	var noHeader bool
	c := newCommand("load GRAPH RELATION FILE", "Load a CSV file in one transaction",
		`Load the rows of a CSV file, plain or gzip, in one transaction. The first line
names the relation's columns in any order; with --no-header it is data, in the
schema's order. Types come from the schema. Each bad row is named by line,
column and reason, and then nothing is loaded. FILE may be - for standard input.`,
		`  heddle load shop edge edges.csv
  heddle load shop edge edges.csv.gz --no-header
  psql -c "copy edge to stdout csv header" | heddle load shop edge -`,
		3, func(c *command, server *client, args []string) error {
			file, _, err := c.open(args[2])
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			path := "/v1/graphs/" + url.PathEscape(args[0]) + "/relations/" +
				url.PathEscape(args[1]) + "/rows"
			if noHeader {
				opt.query = url.Values{"header": {"false"}}
			}
			_, err = c.transact(server, request{
				method: "POST", path: path, media: mediaOf(args[2]), body: fileReader{file},
				// A refusal by key, graph or size comes before a large file is sent.
				header: map[string]string{"Expect": "100-continue"},
			}, &opt)
			return err
		})
	c.Flags().BoolVar(&noHeader, "no-header", false,
		"the first line is data, not the columns' names")
	opt.addFlags(c)
	return c.Command
}

// mediaOf is for proxies and logs; the server looks at the first bytes.
func mediaOf(name string) string {
	if strings.EqualFold(filepath.Ext(name), ".gz") {
		return "application/gzip"
	}
	return mime.FormatMediaType("text/csv", map[string]string{"charset": "utf-8"})
}
