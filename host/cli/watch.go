package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/host/config"
	sdk "github.com/heddle-live/heddle/sdk/client"
	"github.com/heddle-live/heddle/sdk/frame"
)

func watchCommand() *cobra.Command {
	var asJSON, once bool
	cmd := &cobra.Command{
		Use:   "watch GRAPH VIEW KEY...",
		Short: "Watch one key of a view",
		Long: `Watch one key of a view as a viewer does, over native QUIC: first the rows, then
each row that enters (+) or leaves (-), until it is interrupted. There is one KEY
for each parameter of the view. A lost connection is repaired; what changed
meanwhile is told as one difference. With --json each change is one line.`,
		Example: `  heddle watch demo tour_of 7
  heddle watch shop low_in north --json
  heddle watch shop low_in north --connect https://127.0.0.1:4443`,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 3 {
			return usageError(cmd, fmt.Sprintf("%s takes GRAPH VIEW KEY..., and %d %s given",
				cmd.CommandPath(), len(args), wasWere(len(args))))
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd, err.Error())
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each change as one line of JSON")
	cmd.Flags().BoolVar(&once, "once", false, "print the rows and end")
	config.AddFlags(cmd.Flags(), config.GroupClient)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true
		cfg, err := config.Load(cmd.Flags(), os.Environ())
		if err != nil {
			return &Error{Code: ExitUsage, Text: err.Error()}
		}
		w := watcher{Command: cmd, asJSON: asJSON, once: once, graph: args[0], view: args[1]}
		err = w.run(cmd.Context(), cfg.Connect, args[2:])
		if e, ok := errors.AsType[*Error](err); ok {
			e.asJSON = asJSON
		}
		return err
	}
	return cmd
}

// watcher prints one key.
type watcher struct {
	*cobra.Command
	asJSON, once bool
	graph, view  string
	columns      []frame.Column
	told         bool // the first rows are out
}

func (w *watcher) run(ctx context.Context, url string, texts []string) error {
	c, err := sdk.Dial(ctx, url, sdk.Config{
		Logger: slog.New(slog.NewTextHandler(w.ErrOrStderr(), nil)),
	})
	if err != nil {
		return &Error{
			Code: ExitUnreachable, Text: fmt.Sprintf("no server answers at %s: %v", url, err),
			Hint: "start one with heddle serve, or name its data listener with --connect or " +
				"HEDDLE_CONNECT",
		}
	}
	defer func() { _ = c.Close() }() // everything that was asked for is printed
	meta, err := c.Meta(ctx, w.graph, w.view)
	if err != nil {
		return w.refusal(err)
	}
	key, err := parseKey(meta, texts)
	if err != nil {
		return err
	}
	watch, err := c.Watch(ctx, w.graph, w.view, key...)
	if err != nil {
		return w.refusal(err)
	}
	w.columns = meta.Columns
	for update, err := range watch.Updates() {
		if ctx.Err() != nil {
			return nil // interrupted, as it is meant to end
		}
		if err != nil {
			return w.refusal(err)
		}
		if err := w.print(&update); err != nil || w.once {
			return err
		}
	}
	return nil
}

// parseKey reads one value for each parameter of the view.
func parseKey(meta *frame.Meta, texts []string) ([]any, error) {
	var names []string
	for _, p := range meta.Parameters {
		names = append(names, p.Name+": "+p.Type.String())
	}
	wrong := func(format string, args ...any) error {
		return &Error{
			Code: ExitUsage, Text: fmt.Sprintf(format, args...),
			Hint: fmt.Sprintf("view %s(%s) takes one KEY for each parameter",
				meta.View, strings.Join(names, ", ")),
		}
	}
	if len(texts) != len(meta.Parameters) {
		return nil, wrong("%d values for %d parameters", len(texts), len(meta.Parameters))
	}
	key := make([]any, len(texts))
	for i, p := range meta.Parameters {
		var err error
		switch p.Type {
		case frame.Int:
			key[i], err = strconv.ParseInt(texts[i], 10, 64)
		case frame.Float:
			key[i], err = strconv.ParseFloat(texts[i], 64)
		case frame.Bool:
			key[i], err = strconv.ParseBool(texts[i])
		default:
			key[i] = texts[i]
		}
		if err != nil {
			return nil, wrong("%q is no %s for parameter %s", texts[i], p.Type, p.Name)
		}
	}
	return key, nil
}

// refusal words an error for the user.
func (w *watcher) refusal(err error) error {
	closed, ok := errors.AsType[*sdk.ClosedError](err)
	switch {
	case w.Context().Err() != nil:
		return nil
	case !ok:
		return &Error{Code: ExitLater, Text: err.Error()}
	case closed.Code == "not_found":
		return &Error{
			Code: ExitRefused, Text: fmt.Sprintf("graph %s has no view %s", w.graph, w.view),
			Hint: "look at the program in force: GET /v1/graphs/" + w.graph + "/program",
		}
	default:
		return &Error{
			Code: ExitRefused, Text: strings.TrimSuffix(closed.Code+": "+closed.Message, ": "),
		}
	}
}

// changed is one line of --json.
type changed struct {
	Revision uint64       `json:"revision"`
	Epoch    string       `json:"epoch"`
	Rows     []frame.Row  `json:"rows,omitempty"` // all rows, in the first line only
	Entered  []frame.Row  `json:"entered"`
	Left     []frame.Row  `json:"left"`
	Skipped  bool         `json:"skipped,omitempty"`
	Stale    *frame.Stale `json:"stale,omitempty"`
}

func (w *watcher) print(u *sdk.Update) error {
	first := !w.told
	w.told = true
	var b strings.Builder
	if w.asJSON {
		line := changed{
			Revision: u.Revision, Epoch: u.Epoch, Skipped: u.Skipped, Stale: u.Stale,
			Entered: filled(u.Entered), Left: filled(u.Left),
		}
		if first {
			line.Rows, line.Entered = filled(u.Rows), []frame.Row{}
		}
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		b.Write(append(text, '\n'))
	} else {
		w.printText(&b, u, first)
	}
	_, err := fmt.Fprint(w.OutOrStdout(), b.String())
	return err
}

func (w *watcher) printText(b *strings.Builder, u *sdk.Update, first bool) {
	if first {
		var names []string
		for _, c := range w.columns {
			names = append(names, c.Name)
		}
		fmt.Fprintf(b, "# %s at revision %d: %s\n", strings.Join(names, "\t"), u.Revision,
			counted(len(u.Rows), "row"))
		printRows(b, "  ", u.Rows)
		return
	}
	fmt.Fprintf(b, "# revision %d", u.Revision)
	if u.Stale != nil {
		fmt.Fprintf(b, ", stale: %s", u.Stale.Message)
	}
	b.WriteByte('\n')
	printRows(b, "- ", u.Left)
	printRows(b, "+ ", u.Entered)
}

func printRows(b *strings.Builder, mark string, rows []frame.Row) {
	for _, row := range rows {
		b.WriteString(mark)
		for i, cell := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			fmt.Fprint(b, cell)
		}
		b.WriteByte('\n')
	}
}

// filled keeps an empty list from being null.
func filled(rows []frame.Row) []frame.Row {
	if rows == nil {
		return []frame.Row{}
	}
	return rows
}
