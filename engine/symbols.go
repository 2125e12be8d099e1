package engine

import (
	"errors"
	"slices"

	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// mainSymbols gives a network the graph's own ids.
type mainSymbols struct{ interner *value.Interner }

func (s mainSymbols) ID(v value.Value) (value.ID, error) {
	id, err := s.interner.Intern(v)
	if err != nil {
		return 0, errors.Join(ErrFull, err)
	}
	return id, nil
}

func (s mainSymbols) Value(id value.ID) value.Value { return s.interner.Value(id) }

func (s mainSymbols) Compare(a, b value.ID) int { return s.interner.Compare(a, b) }

// abandoned is a network or a table that is gone, but whose rows still count as uses
// of what they hold.
type abandoned interface {
	Abandon(rows int) (more bool)
}

// abandonedRows is how many rows of what is gone one commit lets go.
const abandonedRows = 4096

// leave lets a network go, and of its base tables those that are not among kept.
func (e *Engine) leave(n *dataflow.Network, tables, kept []*relation.Relation) {
	if n != nil {
		e.leaving = append(e.leaving, n)
	}
	for _, t := range tables {
		if t != nil && !slices.Contains(kept, t) {
			e.leaving = append(e.leaving, t)
		}
	}
}

// sweep lets the dictionary give up values that no row holds any more, in bounded
// pieces. It waits until Changes has told everything, because what is to be told after
// a deployment was kept as ids that no row need have now.
func (e *Engine) sweep() {
	if len(e.touched) > 0 || e.baselines > 0 {
		return
	}
	// A pin may still read a table that is gone.
	if len(e.leaving) > 0 && len(e.pins) == 0 && !e.leaving[0].Abandon(abandonedRows) {
		e.leaving = slices.Delete(e.leaving, 0, 1)
	}
	e.symbols.Sweep()
}
