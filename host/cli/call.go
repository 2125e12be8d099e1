package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/sdk/frame"
)

func callCommand() *cobra.Command {
	var opt writeOptions
	c := newCommand("call GRAPH ACTION KEY...", "Call an action of the program",
		`Call an action of the program: one transaction, with the values of KEY for the
action's parameters, durable when the command ends. An action with conditions
writes for each row that meets them. If no statement of the action finds such a
row, nothing is written and the exit status is 5: of many who claim at once, one
gets 0. A KEY that begins with - and is no number stands behind --.`,
		`  heddle call shop claim ann 7
  heddle call shop claim ann 7 --idempotency-key 5f3b
  heddle call shop move -5 3 --expect-revision 12 --json
  heddle call shop claim -- -ann- 7`,
		-2, func(c *command, server *client, args []string) error {
			graph, action := args[0], args[1]
			key, err := server.actionKey(c.Context(), graph, action, unshielded(args[2:]))
			if err != nil {
				return err
			}
			path := "/v1/graphs/" + url.PathEscape(graph) + "/actions/" + url.PathEscape(action)
			if key != "" {
				path += "/" + key
			}
			receipt, err := c.transact(server, request{method: "POST", path: path}, &opt)
			if err != nil || wrote(receipt) {
				return err
			}
			return &Error{
				Code: ExitUnmet,
				Text: fmt.Sprintf("nothing was written: no row meets the conditions of %s", action),
			}
		})
	opt.addFlags(c)
	return c.Command
}

// wrote reports whether a statement had a row to write for.
func wrote(r *admin.Receipt) bool {
	return r.Statements == nil ||
		slices.ContainsFunc(r.Statements, func(s admin.StatementReceipt) bool { return s.Rows > 0 })
}

// actionKey spells values for an action's parameters as a path does. Of an action that
// is not there it returns "": the server says what is wrong.
func (c *client) actionKey(ctx context.Context, graph, action string, texts []string) (
	string, error,
) {
	var known struct {
		Actions []struct {
			Name       string             `json:"name"`
			Parameters []admin.ColumnInfo `json:"parameters"`
		} `json:"actions"`
	}
	describe := request{method: "GET", path: "/v1/graphs/" + url.PathEscape(graph)}
	if _, err := c.get(ctx, describe, &known); err != nil {
		return "", err
	}
	for _, a := range known.Actions {
		if a.Name != action {
			continue
		}
		parameters := make([]frame.Column, len(a.Parameters))
		for i, p := range a.Parameters {
			t, ok := frame.TypeOf(p.Type)
			if !ok {
				return "", &Error{
					Code: ExitUnreachable, Text: fmt.Sprintf("parameter %s of action %s has the "+
						"type %q, which this version does not know", p.Name, action, p.Type),
				}
			}
			parameters[i] = frame.Column{Name: p.Name, Type: t}
		}
		key, err := parseKey("action "+action, parameters, texts)
		if err != nil || len(key) == 0 {
			return "", err
		}
		spelling, err := frame.JoinKey(key...)
		if err != nil {
			return "", &Error{Code: ExitUsage, Text: err.Error()}
		}
		return spelling, nil
	}
	return "", nil
}
