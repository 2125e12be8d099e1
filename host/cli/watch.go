package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
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
meanwhile is told as one difference. Cells stand apart by tabs; characters that
would break a line are escaped as in Go. With --json each change is one line. A
KEY that begins with - and is no number stands behind --.`,
		Example: `  heddle watch demo tour_of 7
  heddle watch shop low_in north --json
  heddle watch weather colder_than -5
  heddle watch shop low_in --once -- -north
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
		err = w.run(cmd.Context(), cfg.Connect, unshielded(args[2:]))
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
	columns      []frame.Column // of the last header
	told         bool           // the first rows are out
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
	key, err := parseKey("view "+meta.View, meta.Parameters, texts)
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

// refusal words an error for the user.
func (w *watcher) refusal(err error) error {
	closed, ok := errors.AsType[*sdk.ClosedError](err)
	switch {
	case w.Context().Err() != nil:
		return nil
	case errors.Is(err, frame.ErrKey):
		return &Error{Code: ExitUsage, Text: err.Error()}
	case !ok:
		return &Error{Code: ExitLater, Text: err.Error()}
	}
	p := &admin.Problem{Status: http.StatusBadGateway, Code: closed.Code}
	switch closed.Code {
	case "not_found":
		p.Status = http.StatusNotFound
		p.Detail = fmt.Sprintf("there is no graph %s, or it has no view %s", w.graph, w.view)
		p.Hint = "heddle apply " + w.graph + " FILE makes a graph with its views; the program in " +
			"force is at GET /v1/graphs/" + w.graph + "/program of the admin listener"
	case "view_dropped":
		p.Status = http.StatusGone
		p.Detail = fmt.Sprintf("view %s of graph %s is gone: the graph was deleted, or a new "+
			"program has no such view", w.view, w.graph)
	case "unauthorized":
		p.Status = http.StatusForbidden
		p.Detail = fmt.Sprintf("the server does not let you watch this key of view %s", w.view)
	case "token_expired":
		p.Status = http.StatusForbidden
		p.Detail = fmt.Sprintf("the right to watch view %s has expired", w.view)
	default:
		p.Detail = fmt.Sprintf("the server ended the watch of view %s: %s", w.view, closed.Code)
	}
	if closed.Message != "" {
		p.Detail += " (" + plainText(closed.Message) + ")"
	}
	p.Title = http.StatusText(p.Status)
	return &Error{Code: ExitRefused, Problem: p}
}

// changed is one line of --json.
type changed struct {
	Revision uint64             `json:"revision"`
	Epoch    string             `json:"epoch"`
	Columns  []admin.ColumnInfo `json:"columns,omitempty"` // where they are other ones than before
	Rows     *rows              `json:"rows,omitempty"`    // all rows, in the first line only
	Entered  rows               `json:"entered"`
	Left     rows               `json:"left"`
	Skipped  bool               `json:"skipped,omitempty"`
	Stale    *stale             `json:"stale,omitempty"`
	Parts    map[string]part    `json:"parts,omitempty"` // of a view with named parts
}

// part is what changed in a named part.
type part struct {
	Rows    *rows  `json:"rows,omitempty"` // in the first line only
	Entered rows   `json:"entered"`
	Left    rows   `json:"left"`
	Stale   *stale `json:"stale,omitempty"`
}

// stale says why rows are not exact, as frames do.
type stale struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Rule    string `json:"rule,omitempty"`
}

func staleOf(s *frame.Stale) *stale {
	if s == nil {
		return nil
	}
	return &stale{s.Code, s.Message, s.Rule}
}

// partsOf returns the parts of an update for a line of --json.
func partsOf(u *sdk.Update, first bool) map[string]part {
	if u.Parts == nil {
		return nil
	}
	parts := make(map[string]part, len(u.Parts))
	for i := range u.Parts {
		p := &u.Parts[i]
		out := part{Entered: p.Entered, Left: p.Left, Stale: staleOf(p.Stale)}
		if first {
			all := rows(p.Rows)
			out.Rows, out.Entered = &all, nil
		}
		parts[p.Name] = out
	}
	return parts
}

// rows are spelt as in frames: an int that JavaScript would round is a string.
type rows []frame.Row

// MarshalJSON implements json.Marshaler.
func (r rows) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for _, row := range r {
		b = frame.AppendRow(b, row)
	}
	return append(b, ']'), nil
}

func (w *watcher) print(u *sdk.Update) error {
	first := !w.told
	w.told = true
	renamed := u.Meta != nil && !slices.Equal(u.Meta.Columns, w.columns)
	if renamed {
		w.columns = u.Meta.Columns
	}
	var b strings.Builder
	if w.asJSON {
		line := changed{
			Revision: u.Revision, Epoch: u.Epoch, Skipped: u.Skipped, Stale: staleOf(u.Stale),
			Entered: u.Entered, Left: u.Left, Parts: partsOf(u, first),
		}
		if first {
			all := rows(u.Rows)
			line.Rows, line.Entered = &all, nil
		}
		if renamed {
			for _, c := range w.columns {
				line.Columns = append(line.Columns,
					admin.ColumnInfo{Name: c.Name, Type: c.Type.String(), Nullable: c.Nullable})
			}
		}
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		b.Write(append(text, '\n'))
	} else {
		w.printText(&b, u, first, renamed)
	}
	_, err := fmt.Fprint(w.OutOrStdout(), b.String())
	return err
}

func (w *watcher) printText(b *strings.Builder, u *sdk.Update, first, renamed bool) {
	if u.Parts != nil {
		printParts(b, u, first)
		return
	}
	if first || renamed {
		var names []string
		for _, c := range w.columns {
			names = append(names, c.Name)
		}
		fmt.Fprintf(b, "# %s at revision %d: %s", strings.Join(names, "\t"), u.Revision,
			counted(len(u.Rows), "row"))
	} else {
		fmt.Fprintf(b, "# revision %d", u.Revision)
	}
	b.WriteString(staleText(u.Stale) + "\n")
	if first {
		printRows(b, "  ", u.Rows)
		return
	}
	printRows(b, "- ", u.Left)
	printRows(b, "+ ", u.Entered)
}

// printParts prints the named parts of a view: at first all, then those that changed.
func printParts(b *strings.Builder, u *sdk.Update, first bool) {
	if !first {
		fmt.Fprintf(b, "# revision %d\n", u.Revision)
	}
	for i := range u.Parts {
		p := &u.Parts[i]
		switch {
		case first:
			var names []string
			for _, c := range partColumns(u.Meta, p.Name) {
				names = append(names, c.Name)
			}
			fmt.Fprintf(b, "# %s: %s at revision %d: %s%s\n", p.Name, strings.Join(names, "\t"),
				u.Revision, counted(len(p.Rows), "row"), staleText(p.Stale))
			printRows(b, "  ", p.Rows)
		case len(p.Left) > 0 || len(p.Entered) > 0 || p.Stale != nil:
			fmt.Fprintf(b, "# %s%s\n", p.Name, staleText(p.Stale))
			printRows(b, "- ", p.Left)
			printRows(b, "+ ", p.Entered)
		}
	}
}

// partColumns returns the columns of a part, none if the server does not tell.
func partColumns(meta *frame.Meta, name string) []frame.Column {
	if meta != nil {
		for i := range meta.Parts {
			if meta.Parts[i].Name == name {
				return meta.Parts[i].Columns
			}
		}
	}
	return nil
}

// staleText says why rows are not exact, "" if they are.
func staleText(s *frame.Stale) string {
	switch {
	case s == nil:
		return ""
	case s.Code == frame.StaleIncomplete:
		return ", incomplete: " + plainText(s.Message)
	}
	return ", stale: " + plainText(s.Message)
}

// printRows prints a line for each row, whatever stands in its strings.
func printRows(b *strings.Builder, mark string, rows []frame.Row) {
	for _, row := range rows {
		b.WriteString(mark)
		for i, cell := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			// As query spells it.
			switch cell := cell.(type) {
			case string:
				b.WriteString(plainText(cell))
			case frame.Bytes:
				text, _ := cell.MarshalText() // never fails
				b.Write(text)
			case int64: // not quoted if it is large, as in frames
				b.WriteString(strconv.FormatInt(cell, 10))
			case frame.Timestamp:
				b.WriteString(timeText(int64(cell)))
			default:
				b.Write(frame.AppendCell(nil, cell))
			}
		}
		b.WriteByte('\n')
	}
}
