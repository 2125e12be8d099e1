package engine

import (
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

// rowCount counts what a program changes in the rows of watched keys, by view.
type rowCount struct {
	diff  *Diff
	views map[string]*ViewRows
}

// newRowCount begins with the keys that end.
func newRowCount(d *Diff) *rowCount {
	c := &rowCount{diff: d, views: make(map[string]*ViewRows)}
	for _, k := range d.LostKeys {
		c.of(k.family.view.Name).Keys++
	}
	return c
}

func (c *rowCount) of(view string) *ViewRows {
	v := c.views[view]
	if v == nil {
		v = &ViewRows{View: view}
		c.views[view] = v
	}
	return v
}

func (v *ViewRows) add(entered bool) {
	if entered {
		v.Entered++
	} else {
		v.Left++
	}
}

// finish puts the counts into the diff, by name of the view.
func (c *rowCount) finish() {
	for _, v := range c.views {
		if *v != (ViewRows{View: v.View}) {
			c.diff.Rows = append(c.diff.Rows, *v)
		}
	}
	slices.SortFunc(c.diff.Rows, func(a, b ViewRows) int {
		if a.View < b.View {
			return -1
		}
		return 1
	})
}

// countRows counts how the results in the next network differ from what was told.
func (e *Engine) countRows(n *next, d *Diff) {
	count := newRowCount(d)
	for _, p := range n.goals {
		if n.kept[p.view] != nil {
			continue
		}
		f, view := e.views[p.view], count.of(p.view)
		if f == nil || f.watched == 0 || view.Keys > 0 || n.network.Unsure(p.goal) {
			continue // nobody watches it, its keys end, or they keep their rows
		}
		rows := make(map[string]bool) // told of this part, of all keys
		old := &f.parts[p.index]
		for _, u := range old.units {
			if u == nil {
				continue
			}
			flat, width := e.outputIDs(u), len(old.outputs)
			if u.baseline != nil {
				flat = *u.baseline
			}
			for ; len(flat) > 0; flat = flat[width:] {
				rows[rowText(u.key.ids, flat[:width])] = true
			}
		}
		table := n.network.Result(p.goal)
		row := make([]value.ID, len(p.outputs))
		for at, ok := table.NextVisible(0); ok; at, ok = table.NextVisible(at + 1) {
			cells := table.Row(at)
			for i, o := range n.network.Outputs(p.goal) {
				if row[i] = o.Constant; o.Column >= 0 {
					row[i] = cells[o.Column]
				}
			}
			text := rowText(cells[:p.parameters], row)
			if !rows[text] {
				view.Entered++
			}
			delete(rows, text)
		}
		view.Left += len(rows)
	}
	count.finish()
}

func rowText(key, row []value.ID) string {
	return string(appendKey(appendKey(nil, 0, key), 0, row))
}
