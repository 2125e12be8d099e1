package engine

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// ColumnChange tells what becomes of a column of a base relation that goes on.
type ColumnChange struct {
	Relation string `json:"relation"`
	Column   string `json:"column" doc:"Its name, the new one if it has another"`
	// Change is one of these words.
	Change string `json:"change" doc:"added, dropped, renamed, moved, type, nullable or not_nullable"`
	Was    string `json:"was,omitempty" doc:"The name, or type, that it had"`
}

// places returns for each column of a base relation its place among those of the next
// program, -1 for none: that of its name or, where that is gone, its own if it is given
// to a new name.
func places(old, next []analysis.Column) []int {
	to, taken := make([]int, len(old)), make([]bool, len(next))
	for i := range old {
		named := func(c analysis.Column) bool { return c.Name == old[i].Name }
		to[i] = slices.IndexFunc(next, named)
		if to[i] >= 0 {
			taken[to[i]] = true
		}
	}
	for i, at := range to {
		if at < 0 && i < len(next) && !taken[i] {
			to[i] = i
		}
	}
	return to
}

// misfit says why the rows of a base relation do not fit the columns of the next
// program, "" if they do, and where they go.
func (e *Engine) misfit(id analysis.RelationID, next []analysis.Column) (to []int, why string) {
	old := e.program.Relations[id].Columns
	to = places(old, next)
	kept := make([]bool, len(next))
	for i, at := range to {
		switch {
		case at < 0 && i < len(next):
			return nil, fmt.Sprintf("its column %s is gone, and %s stands in its place",
				old[i].Name, next[i].Name)
		case at < 0:
			return nil, fmt.Sprintf("its column %s is gone", old[i].Name)
		case old[i].Type != next[at].Type:
			return nil, "the types of its columns change"
		case old[i].Nullable && !next[at].Nullable && e.holdsNull(id, i):
			return nil, fmt.Sprintf("its column %s is not nullable any more, and rows hold null",
				next[at].Name)
		}
		kept[at] = true
	}
	for i := range next {
		if c := &next[i]; !kept[i] && !c.Nullable {
			return nil, fmt.Sprintf("its new column %s is not nullable (%s: %s? would be)",
				c.Name, c.Name, c.Type)
		}
	}
	return to, ""
}

func (e *Engine) holdsNull(id analysis.RelationID, column int) bool {
	table := e.tables[id]
	for at, ok := table.NextVisible(0); ok; at, ok = table.NextVisible(at + 1) {
		if table.Row(at)[column] == value.NullID {
			return true
		}
	}
	return false
}

// columnChanges tells what becomes of each column that does not stay as it is.
func columnChanges(relation string, old, next []analysis.Column) (out []ColumnChange) {
	tell := func(column, change, was string) {
		out = append(out, ColumnChange{relation, column, change, was})
	}
	to := places(old, next)
	for i, at := range to {
		if at < 0 {
			tell(old[i].Name, "dropped", "")
		}
	}
	for at := range next {
		c, i := &next[at], slices.Index(to, at)
		if i < 0 {
			tell(c.Name, "added", "")
			continue
		}
		was := &old[i]
		switch {
		case was.Name != c.Name:
			tell(c.Name, "renamed", was.Name)
		case i != at:
			tell(c.Name, "moved", "")
		}
		switch {
		case was.Type != c.Type:
			tell(c.Name, "type", was.Type.String())
		case was.Nullable && !c.Nullable:
			tell(c.Name, "not_nullable", "")
		case !was.Nullable && c.Nullable:
			tell(c.Name, "nullable", "")
		}
	}
	return out
}

// stays reports whether columns keep their places.
func stays(to []int) bool {
	for i, at := range to {
		if i != at {
			return false
		}
	}
	return true
}

// carried returns a table with the rows of another, their columns moved, and null in
// further columns; the other itself if that is the same.
func (e *Engine) carried(old *relation.Relation, to []int, arity int) *relation.Relation {
	if old.Arity() == arity && stays(to) {
		return old
	}
	table := e.newTable(arity)
	row := make([]value.ID, arity)
	for i := range row {
		row[i] = value.NullID
	}
	for at, ok := old.NextVisible(0); ok; at, ok = old.NextVisible(at + 1) {
		for i, cell := range old.Row(at) {
			row[to[i]] = cell
		}
		id, _ := table.Add(row)
		table.SetFlags(id, old.Flags(at)&relation.CallerFlags)
		table.Show(id)
	}
	return table
}
