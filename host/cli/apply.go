package cli

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
)

// programBytesMax is how much of a program is sent; a server refuses less than that
// for its size.
const programBytesMax = 64 << 20

// applied is the answer to an apply.
type applied struct {
	Revision uint64        `json:"revision"`
	Created  bool          `json:"created"`
	DryRun   bool          `json:"dry_run"`
	Changes  admin.Changes `json:"changes"`
}

// applyOptions are how far an apply may go.
type applyOptions struct {
	dryRun, loss, noCreate bool
}

func applyCommand() *cobra.Command {
	var opt applyOptions
	c := newCommand("apply GRAPH FILE", "Make a file the graph's whole program",
		`Make a file the graph's whole program of schema, rules, views and actions.

What is not in the file is dropped; nothing of a program with an error is
applied. Printed is what is added (+), changed (~) and dropped (-), and how many
rows of watched keys enter and leave. A change that would lose facts is refused,
unless --yes is given. With --dry-run it stays at saying what would happen. The
graph is created if there is none. FILE may be - for standard input.`,
		`  heddle apply shop shop.heddle
  heddle apply shop shop.heddle --dry-run
  heddle apply shop shop.heddle --yes
  echo '+edge(src: int, dst: int)' | heddle apply shop -`,
		2, func(c *command, server *client, args []string) error {
			file, _, err := c.open(args[1])
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			program, err := io.ReadAll(io.LimitReader(file, programBytesMax))
			if err != nil {
				return &Error{Code: ExitUsage, Text: err.Error()}
			}
			var answer applied
			body, err := c.apply(server, args[0], program, opt, &answer)
			if err != nil {
				return c.explainLoss(server, args[0], program, opt, err)
			}
			if c.asJSON {
				return c.printJSON(body)
			}
			return c.printApplied(args[0], &answer)
		})
	c.Flags().BoolVar(&opt.dryRun, "dry-run", false, "only say what would change")
	c.Flags().BoolVar(&opt.loss, "yes", false, "drop facts that the new program has no place for")
	c.Flags().BoolVar(&opt.loss, "allow-loss", false, "the same as --yes")
	_ = c.Flags().MarkHidden("allow-loss") // it fails for a flag that is not there only
	c.Flags().BoolVar(&opt.noCreate, "no-create", false, "fail if there is no such graph")
	return c.Command
}

// apply sends a program and reads the answer, of which it returns the text as well.
func (c *command) apply(server *client, graph string, program []byte, opt applyOptions,
	answer *applied,
) ([]byte, error) {
	query := url.Values{}
	for name, on := range map[string]bool{
		"dry_run": opt.dryRun, "allow_loss": opt.loss, "create": !opt.noCreate,
	} {
		if on {
			query.Set(name, "true")
		}
	}
	return server.get(c.Context(), request{
		method: "PUT", path: "/v1/graphs/" + url.PathEscape(graph) + "/program?" + query.Encode(),
		media: "text/plain; charset=utf-8", body: bytes.NewReader(program),
	}, answer)
}

// explainLoss prints what a program would change that was refused because facts would
// be lost, and returns the refusal. Other refusals it only returns.
func (c *command) explainLoss(server *client, graph string, program []byte, opt applyOptions,
	refusal error,
) error {
	e, ok := errors.AsType[*Error](refusal)
	if !ok || e.Problem == nil || e.Problem.Code != "data_loss" || c.asJSON {
		return refusal
	}
	opt.dryRun, opt.loss = true, true
	var answer applied
	if _, err := c.apply(server, graph, program, opt, &answer); err != nil {
		return refusal // there is no more to say
	}
	if err := c.printApplied(graph, &answer); err != nil {
		return err
	}
	return refusal
}

// printApplied prints a headline, then a line for each change.
func (c *command) printApplied(graph string, a *applied) error {
	was := "applied"
	if a.Created {
		was = "created and applied"
	}
	headline := "graph %s: program %s at revision %d\n"
	if a.DryRun {
		headline = "graph %s: program would be %s (now at revision %d)\n"
	}
	if err := c.print(headline, graph, was, a.Revision); err != nil {
		return err
	}
	if a.Changes.Empty() {
		return c.print("  no changes\n")
	}
	relations := &a.Changes.Relations
	dropped := make([]string, len(relations.Dropped))
	for i, r := range relations.Dropped {
		dropped[i] = r.Name
	}
	for _, list := range []struct {
		sign, what string
		names      []string
	}{
		{"+", "relation", relations.Added},
		{"~", "relation", withColumns(relations)},
		{"~", "relation", renamed(relations)},
		{"-", "relation", withLosses(dropped, relations.Lost)},
		{"~", "clock", changedClock(a.Changes.Clock)},
		{"+", "rule", a.Changes.Rules.Added},
		{"-", "rule", a.Changes.Rules.Dropped},
		{"+", "view", a.Changes.Views.Added},
		{"~", "view", a.Changes.Views.Changed},
		{"-", "view", a.Changes.Views.Dropped},
		{"+", "action", a.Changes.Actions.Added},
		{"~", "action", a.Changes.Actions.Changed},
		{"-", "action", a.Changes.Actions.Dropped},
		{"*", "view", watchedRows(&a.Changes.Views)},
	} {
		for _, name := range list.names {
			if err := c.print("  %s %s %s\n", list.sign, list.what, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// changedClock words how a clock changes.
func changedClock(c *admin.ClockChange) []string {
	switch {
	case c == nil:
		return nil
	case c.Was == "":
		return []string{"every " + c.Now + ", new"}
	case c.Now == "":
		return []string{"every " + c.Was + ", dropped"}
	}
	return []string{"every " + c.Now + ", was every " + c.Was}
}

// withColumns words what becomes of the columns of changed relations.
func withColumns(relations *admin.RelationChanges) []string {
	out := withLosses(relations.Changed, relations.Lost)
	for i, name := range relations.Changed {
		var columns []string
		for _, c := range relations.Columns {
			if c.Relation != name {
				continue
			}
			change := c.Column + " " + strings.ReplaceAll(c.Change, "_", " ")
			switch c.Change {
			case "renamed":
				change = c.Was + " renamed to " + c.Column
			case "type":
				change = c.Column + " no longer a " + c.Was
			}
			columns = append(columns, change)
		}
		if len(columns) > 0 {
			out[i] += ": " + strings.Join(columns, ", ")
		}
	}
	return out
}

// renamed words which relations have another name from now on.
func renamed(relations *admin.RelationChanges) []string {
	var out []string
	for _, r := range relations.Renamed {
		out = append(out, r.To+" was "+withLosses([]string{r.From}, relations.Lost)[0])
	}
	return out
}

// withLosses adds to names of relations how many rows they lose.
func withLosses(names []string, lost []admin.DroppedRelation) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = name
		for _, r := range lost {
			if r.Name == name {
				out[i] += " (" + counted(r.Rows, "row") + " lost)"
			}
		}
	}
	return out
}

// watchedRows words what becomes of views that are declared as before but read what
// changes, and of the watched keys of all views.
func watchedRows(views *admin.ViewChanges) []string {
	var out []string
	for _, name := range views.Touched {
		watched := func(v admin.ViewRows) bool { return v.View == name }
		if !slices.ContainsFunc(views.Rows, watched) {
			out = append(out, name+": it reads what changes")
		}
	}
	for _, v := range views.Rows {
		var parts []string
		for _, part := range []struct {
			n                   int
			noun, one, severals string
		}{
			{v.Entered, "row", "enters", "enter"},
			{v.Left, "row", "leaves", "leave"},
			{v.Keys, "watched key", "ends", "end"},
		} {
			switch part.n {
			case 0:
			case 1:
				parts = append(parts, counted(1, part.noun)+" "+part.one)
			default:
				parts = append(parts, counted(part.n, part.noun)+" "+part.severals)
			}
		}
		out = append(out, v.View+": "+strings.Join(parts, ", "))
	}
	return out
}
