package engine

import (
	"fmt"

	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/value"
)

// Try evaluates a view at a key as Watch would, but within a budget of steps as
// QueryOptions counts them, and keeps nothing. It returns ErrBudget, wrapped, if
// Watch would take more, and the errors of Watch. A key that is watched already
// costs nothing more and is always within the budget.
func (e *Engine) Try(view string, key []value.Value, budget uint64) error {
	f, ok := e.views[view]
	if !ok {
		return fmt.Errorf("view %q: %w", view, ErrUnknownView)
	}
	if err := checkValues(key, f.view.Parameters); err != nil {
		return fmt.Errorf("view %q: %w", view, err)
	}
	symbols := &querySymbols{interner: e.symbols}
	ids := make([]value.ID, len(key))
	known := true
	for i, v := range key {
		var err error
		if ids[i], err = symbols.ID(v); err != nil {
			return err
		}
		known = known && !symbols.isExtra(ids[i])
	}
	if known {
		if _, watched := e.network.DemandRow(f.parts[0].goal, ids); watched {
			return nil
		}
	}
	network, err := dataflow.New(dataflow.Config{
		Program: e.prepared, Symbols: symbols, Tables: e.tables,
		Goals: queries(f.view), Transient: true,
	})
	if err != nil {
		return fmt.Errorf("view %q: %w", view, err)
	}
	network.Limit(budget, nil)
	for i := range f.parts {
		network.Demand(i, ids)
	}
	if _, _, err := network.Settle(); err != nil {
		return fmt.Errorf("view %q: %w", view, err)
	}
	return nil
}
