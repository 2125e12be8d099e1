package cli

import (
	"net/url"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
)

// applied is the answer to an apply.
type applied struct {
	Revision uint64        `json:"revision"`
	Created  bool          `json:"created"`
	DryRun   bool          `json:"dry_run"`
	Changes  admin.Changes `json:"changes"`
}

func applyCommand() *cobra.Command {
	var dryRun, allowLoss, noCreate bool
	c := newCommand("apply GRAPH FILE", "Make a file the graph's whole program",
		`Make a file the graph's whole program of schema, rules and views.

What is not in the file is dropped; nothing of a program with an error is
applied. A change that would lose facts is refused, unless --allow-loss is
given. The graph is created if there is none. FILE may be - for standard input.`,
		`  heddle apply shop shop.heddle
  heddle apply shop shop.heddle --dry-run
  echo '+edge(src: int, dst: int)' | heddle apply shop -`,
		2, func(c *command, server *client, args []string) error {
			file, _, err := c.open(args[1])
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }()
			query := url.Values{}
			for name, on := range map[string]bool{
				"dry_run": dryRun, "allow_loss": allowLoss, "create": !noCreate,
			} {
				if on {
					query.Set(name, "true")
				}
			}
			var answer applied
			body, err := server.get(c.Context(), request{
				method: "PUT", path: "/v1/graphs/" + url.PathEscape(args[0]) + "/program?" +
					query.Encode(),
				media: "text/plain; charset=utf-8", body: fileReader{file},
			}, &answer)
			if err != nil {
				return err
			}
			if c.asJSON {
				return c.printJSON(body)
			}
			return c.printApplied(args[0], &answer)
		})
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would change")
	c.Flags().BoolVar(&allowLoss, "allow-loss", false,
		"drop facts that the new program has no place for")
	c.Flags().BoolVar(&noCreate, "no-create", false, "fail if there is no such graph")
	return c.Command
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
	dropped := make([]string, len(a.Changes.Relations.Dropped))
	for i, r := range a.Changes.Relations.Dropped {
		dropped[i] = r.Name
		if r.Rows > 0 {
			dropped[i] += " (" + counted(r.Rows, "row") + " lost)"
		}
	}
	for _, list := range []struct {
		sign, what string
		names      []string
	}{
		{"+", "relation", a.Changes.Relations.Added},
		{"~", "relation", a.Changes.Relations.Changed},
		{"-", "relation", dropped},
		{"+", "rule", a.Changes.Rules.Added},
		{"-", "rule", a.Changes.Rules.Dropped},
		{"+", "view", a.Changes.Views.Added},
		{"~", "view", a.Changes.Views.Changed},
		{"-", "view", a.Changes.Views.Dropped},
	} {
		for _, name := range list.names {
			if err := c.print("  %s %s %s\n", list.sign, list.what, name); err != nil {
				return err
			}
		}
	}
	return nil
}
