package cli

import (
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

func explainPlanCommand() *cobra.Command {
	var profile time.Duration
	c := newCommand("explain GRAPH NAME", "Explain how a view or rule is evaluated",
		`Explain how a view, the rules of a relation, or what reads the facts of one are
evaluated: the sets of rows that are kept, the indexes, and for each atom of each
rule the steps that are taken when a row of it comes or goes. Below are notes on
what was done to the rules, or refused, and why. With --profile the server counts
for that long what the steps find, and how long the plans take.`,
		`  heddle explain shop hops
  heddle explain shop hop2 --profile 5s`,
		2, func(c *command, server *client, args []string) error {
			path := "/v1/graphs/" + url.PathEscape(args[0]) + "/explain/" + url.PathEscape(args[1])
			if c.Flags().Changed("profile") {
				if profile < time.Millisecond {
					return usageError(c.Command,
						fmt.Sprintf("--profile %v: expected 1ms or more", profile))
				}
				path += fmt.Sprintf("?profile_ms=%d", profile.Milliseconds())
			}
			var answer struct {
				Revision uint64 `json:"revision"`
				Text     string `json:"text"`
			}
			body, err := server.get(c.Context(), request{method: "GET", path: path}, &answer)
			if err != nil {
				return err
			}
			if c.asJSON {
				return c.printJSON(body)
			}
			return c.print("%s(at revision %d)\n", plainLines(answer.Text), answer.Revision)
		})
	c.Flags().DurationVar(&profile, "profile", 0, "count for this time, such as 5s, at most 1m")
	return c.Command
}
