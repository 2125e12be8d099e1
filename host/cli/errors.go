package cli

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
)

func errorsCommand() *cobra.Command {
	c := newCommand("errors GRAPH", "List what the rules cannot compute",
		`List the rules and views that cannot be computed for some rows that somebody
watches: overflow, division by zero and the like. Of each are printed its place in
the program, for how many rows, and the first 20 with the values of its variables.
A row error goes when its cause does.`,
		`  heddle errors shop
  heddle errors shop --json`,
		1, func(c *command, server *client, args []string) error {
			var list admin.ErrorList
			body, err := server.get(c.Context(), request{
				method: "GET", path: "/v1/graphs/" + url.PathEscape(args[0]) + "/errors",
			}, &list)
			if err != nil {
				return err
			}
			if c.asJSON {
				return c.printJSON(body)
			}
			return c.printErrors(args[0], &list)
		})
	return c.Command
}

// printErrors prints each clause, then its rows.
func (c *command) printErrors(graph string, list *admin.ErrorList) error {
	if len(list.Errors) == 0 {
		return c.print("graph %s: no row errors at revision %d\n", graph, list.Revision)
	}
	if err := c.print("graph %s: row errors at revision %d\n", graph, list.Revision); err != nil {
		return err
	}
	for i := range list.Errors {
		e := &list.Errors[i]
		var b strings.Builder
		fmt.Fprintf(&b, "  line %d: %s\n", e.Line, notComputed(e))
		for _, row := range e.Rows {
			b.WriteString("    " + rowError(&row) + "\n")
		}
		if more := e.Count - len(e.Rows); more > 0 {
			fmt.Fprintf(&b, "    and %d more\n", more)
		}
		if err := c.print("%s", b.String()); err != nil {
			return err
		}
	}
	return nil
}

// notComputed says which clause cannot be computed, and how often.
func notComputed(e *admin.RuleErrors) string {
	what := "the condition"
	switch {
	case e.Rule != "":
		what = plainText(e.Rule)
	case e.View != "":
		what = "view " + e.View
	}
	return what + " cannot be computed for " + counted(e.Count, "row")
}

// rowError says why a row cannot be computed, and for which values.
func rowError(row *admin.RowErrorInfo) string {
	text := plainText(row.Message)
	var bindings []string
	for _, name := range slices.Sorted(maps.Keys(row.Bindings)) {
		bindings = append(bindings, name+" = "+plainText(row.Bindings[name]))
	}
	if bindings != nil {
		text += " for " + strings.Join(bindings, ", ")
	}
	return text
}
