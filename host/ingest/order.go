package ingest

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/journal"
)

// reorder returns the order in which a relation's facts stand in the journal when its
// columns move and there are more of them; nil is the order of the columns.
func reorder(order, to []int, columns int) []int {
	next := make([]int, len(to), columns)
	for i := range next {
		if next[i] = to[i]; order != nil {
			next[i] = to[order[i]]
		}
	}
	moved := false
	for column := range columns {
		if !slices.Contains(next, column) {
			next = append(next, column)
		}
		moved = moved || next[column] != column
	}
	if !moved {
		return nil
	}
	return next
}

// stored is how a relation's facts stand in the journal.
type stored struct {
	name  string
	width int
	order []int
}

// storedRelations returns them by number.
func (p *program) storedRelations() (map[uint32]*stored, error) {
	out := make(map[uint32]*stored, len(p.relations))
	for name, id := range p.relations {
		s := &stored{name: name, order: p.orders[name]}
		if at, ok := p.checked.RelationNamed(name); ok {
			s.width = len(p.checked.Relations[at].Columns)
		}
		if s.order != nil {
			sorted := slices.Sorted(slices.Values(s.order))
			for i, column := range sorted {
				if i != column || len(sorted) != s.width {
					return nil, fmt.Errorf("%w: the order of the columns of %s",
						journal.ErrCorrupt, name)
				}
			}
		}
		out[id] = s
	}
	return out, nil
}

// row puts a fact's cells, which are the last of cells, into the order of the columns.
func (s *stored) row(cells []value.Value, from int) ([]value.Value, analysis.Op) {
	for len(cells)-from < s.width {
		cells = append(cells, value.OfNull()) // not written; see mutation
	}
	if row := cells[from:]; s.order != nil && len(row) == s.width {
		was := slices.Clone(row)
		for i, column := range s.order {
			row[column] = was[i]
		}
	}
	return cells, analysis.Op{Relation: s.name, Row: cells[from:len(cells):len(cells)]}
}
