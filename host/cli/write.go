package cli

import (
	"bytes"
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
// as -5 for flags: a space in front makes them arguments, and write and watch
// take the space off again.
func Arguments(args []string) []string {
	prepared := slices.Clone(args)
	watch := len(args) > 0 && args[0] == "watch"
	for i, a := range prepared {
		isKey := watch && negative.MatchString(a) && !takesNext(args[i-1])
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
	var key string
	c := newCommand("write GRAPH PROGRAM", "Write facts in one transaction",
		`Write facts in one transaction: all of it or nothing, durable when the command
ends. PROGRAM holds +relation(…) to insert and -relation(…) to delete, one
statement a line, several rows as +relation[(…), (…)]. It may be - for standard
input. A row that is there already, or is not there, is no error.`,
		`  heddle write shop '+edge(1, 2)'
  heddle write shop '-edge(1, 2)'
  heddle write shop '+edge[(1, 2), (2, 3)]'
  heddle write shop - < facts.heddle`,
		2, func(c *command, server *client, args []string) error {
			text := []byte(strings.TrimPrefix(args[1], " "))
			if args[1] == "-" {
				var err error
				if text, err = io.ReadAll(c.InOrStdin()); err != nil {
					return &Error{Code: ExitUsage, Text: err.Error()}
				}
			}
			return c.transact(server, request{
				method: "POST", path: "/v1/graphs/" + url.PathEscape(args[0]) + "/transactions",
				media: "text/plain; charset=utf-8", body: bytes.NewReader(text),
			}, key)
		})
	idempotencyFlag(c, &key)
	return c.Command
}

func idempotencyFlag(c *command, key *string) {
	c.Flags().StringVar(key, "idempotency-key", "",
		"any text; repeating the command with it writes nothing twice")
}

// transact sends a request that a receipt answers, and prints it.
func (c *command) transact(server *client, r request, key string) error {
	if key != "" {
		r.header = maps.Clone(r.header)
		if r.header == nil {
			r.header = map[string]string{}
		}
		r.header["Idempotency-Key"] = key
	}
	var receipt admin.Receipt
	body, err := server.get(c.Context(), r, &receipt)
	if err != nil {
		return err
	}
	if c.asJSON {
		return c.printJSON(body)
	}
	suffix := ""
	if receipt.Replayed {
		suffix = " (written before, under the same idempotency key)"
	}
	return c.print("revision %d: %s inserted, %d deleted%s\n",
		receipt.Revision, counted(receipt.Inserted, "row"), receipt.Deleted, suffix)
}

// counted spells a number with its noun: 1 row, 2 rows.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

func loadCommand() *cobra.Command {
	var key string
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
				path += "?header=false"
			}
			return c.transact(server, request{
				method: "POST", path: path, media: mediaOf(args[2]), body: fileReader{file},
				// A refusal by key, graph or size comes before a large file is sent.
				header: map[string]string{"Expect": "100-continue"},
			}, key)
		})
	c.Flags().BoolVar(&noHeader, "no-header", false,
		"the first line is data, not the columns' names")
	idempotencyFlag(c, &key)
	return c.Command
}

// mediaOf is for proxies and logs; the server looks at the first bytes.
func mediaOf(name string) string {
	if strings.EqualFold(filepath.Ext(name), ".gz") {
		return "application/gzip"
	}
	return mime.FormatMediaType("text/csv", map[string]string{"charset": "utf-8"})
}
