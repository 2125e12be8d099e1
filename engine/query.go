package engine

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// QueryOptions bounds a query.
type QueryOptions struct {
	MaxRows int // rows returned at most; 0: no limit
	Offset  int // rows of the result to leave out first
	// Budget is the number of steps at most, roughly; 0: no limit. A row that is
	// looked up is a step, one that is derived is two more, and eight rows of a scan
	// are one.
	Budget    uint64
	Cancelled func() bool // asked every few thousand steps; may be nil
	whole     bool        // row errors of the query's own condition are an error
}

// QueryResult is the answer to a query.
type QueryResult struct {
	Columns   []analysis.Column
	Rows      []value.Value // flat, each row as wide as Columns, in the query's order
	Count     int           // of rows; tells more than Rows where there are no columns
	Truncated bool          // the result has more rows than MaxRows let through
	// Errors are of a clause that cannot be computed somewhere, so that rows may be
	// missing; nil if none are.
	Errors *RuleErrors
}

// inProgram reports whether the query may have been analysed against a program.
func inProgram(q *analysis.Query, p *analysis.Program) bool {
	fits := func(a analysis.Atom) bool {
		return int(a.Relation) < len(p.Relations) &&
			len(a.Terms) == len(p.Relations[a.Relation].Columns)
	}
	for _, a := range q.Body.Atoms {
		if !fits(a) {
			return false
		}
	}
	for _, a := range q.Body.Negations {
		if !fits(a) {
			return false
		}
	}
	return true
}

// Query answers a query that was analysed against the present program, with one
// value for each of its parameters. It derives what it needs in a network of its
// own and keeps nothing: no rows, no demand, no symbols, no index. Its errors wrap
// ErrBudget, ErrCancelled, ErrArity, ErrType or ErrStaleQuery, or are *RowErrors.
func (e *Engine) Query(q *analysis.Query, parameters []value.Value, opt QueryOptions) (
	QueryResult, error,
) {
	out := QueryResult{Columns: q.Columns}
	if err := checkValues(parameters, q.Parameters); err != nil {
		return out, fmt.Errorf("parameters: %w", err)
	}
	if !inProgram(q, e.program) {
		return out, ErrStaleQuery
	}
	// All rows are found and then the wanted ones chosen, which for one evaluation is
	// less work than to keep them in order.
	unordered := *q
	unordered.Order, unordered.Limit, unordered.Offset = nil, 0, 0
	symbols := &querySymbols{interner: e.symbols}
	network, err := dataflow.New(dataflow.Config{
		Program: e.prepared, Symbols: symbols, Tables: e.tables,
		Goals: []*analysis.Query{&unordered}, Transient: true,
	})
	if err != nil {
		return out, err
	}
	key := make([]value.ID, len(parameters))
	for i, v := range parameters {
		if key[i], err = symbols.ID(v); err != nil {
			return out, err
		}
	}
	network.Limits(dataflow.Limits{
		Steps: opt.Budget, Derivations: e.limits.CommitRows, Cancelled: opt.Cancelled,
	})
	network.Demand(0, key)
	if _, _, err := network.Settle(); err != nil {
		return out, fmt.Errorf("query: %w", named(err, e.program, nil))
	}
	if cause, ok := network.Cause(0); ok {
		errs := ruleErrors(cause, e.program, nil)
		if network.Unsure(0) || opt.whole && cause.Clause.Rule < 0 {
			return out, &RowErrors{Errors: errs}
		}
		out.Errors = &errs
	}
	out.choose(q, network.Result(0), network.Outputs(0), symbols, opt)
	return out, nil
}

// choose takes the rows that a query and its options want from all that it has.
func (out *QueryResult) choose(q *analysis.Query, table *relation.Relation,
	outputs []dataflow.Source, symbols *querySymbols, opt QueryOptions,
) {
	var rows []relation.RowID
	for id, ok := table.NextVisible(0); ok; id, ok = table.NextVisible(id + 1) {
		rows = append(rows, id)
	}
	compare := func(a, b relation.RowID) int {
		x, y := table.Row(a), table.Row(b)
		for _, by := range q.Order {
			o := outputs[by.Column]
			if o.Column < 0 || x[o.Column] == y[o.Column] {
				continue
			}
			if by.Descending {
				return symbols.Compare(y[o.Column], x[o.Column])
			}
			return symbols.Compare(x[o.Column], y[o.Column])
		}
		for _, o := range outputs {
			if o.Column >= 0 && x[o.Column] != y[o.Column] {
				return symbols.Compare(x[o.Column], y[o.Column])
			}
		}
		return 0
	}
	first, end := 0, len(rows)
	skip := func(n int) { first = min(max(n, 0)+first, end) }
	if q.Limit > 0 {
		skip(q.Offset)
		end = first + min(q.Limit, end-first)
	}
	skip(opt.Offset)
	if opt.MaxRows > 0 && end-first > opt.MaxRows {
		end, out.Truncated = first+opt.MaxRows, true
	}
	rows = smallest(rows, end, compare)
	slices.SortFunc(rows, compare)
	rows = rows[first:]
	out.Count = len(rows)
	out.Rows = make([]value.Value, 0, len(rows)*len(outputs))
	for _, id := range rows {
		for _, o := range outputs {
			cell := o.Constant
			if o.Column >= 0 {
				cell = table.Row(id)[o.Column]
			}
			out.Rows = append(out.Rows, symbols.Value(cell))
		}
	}
}

// smallest returns the n smallest rows, in no order. It changes rows. Sorting all
// of them would take longer than finding them did.
func smallest(rows []relation.RowID, n int, compare func(a, b relation.RowID) int,
) []relation.RowID {
	if n >= len(rows) {
		return rows
	}
	heap := rows[:n] // the largest first
	sink := func(i int) {
		for {
			down := 2*i + 1
			if down >= n {
				return
			}
			if down+1 < n && compare(heap[down+1], heap[down]) > 0 {
				down++
			}
			if compare(heap[i], heap[down]) >= 0 {
				return
			}
			heap[i], heap[down] = heap[down], heap[i]
			i = down
		}
	}
	for i := n/2 - 1; i >= 0; i-- {
		sink(i)
	}
	for _, row := range rows[n:] {
		if compare(row, heap[0]) < 0 {
			heap[0] = row
			sink(0)
		}
	}
	return heap
}

// querySymbols gives the constants of a query that the graph has never seen ids of
// their own, below those of null and the bools and from there down, so that the
// dictionary does not grow. No stored row holds such an id, so they join with nothing.
type querySymbols struct {
	interner *value.Interner
	extra    []value.Value
	ids      map[value.Value]value.ID // of extra, once there are more than a few
}

func (s *querySymbols) ID(v value.Value) (value.ID, error) {
	if id, ok := s.interner.Lookup(v); ok {
		return id, nil
	}
	const few = 16
	if s.ids == nil {
		if i := slices.Index(s.extra, v); i >= 0 {
			return firstExtra - value.ID(i), nil
		}
	} else if id, ok := s.ids[v]; ok {
		return id, nil
	}
	if len(s.extra) >= s.interner.Room() {
		return 0, ErrFull
	}
	id := firstExtra - value.ID(len(s.extra))
	s.extra = append(s.extra, v)
	switch {
	case s.ids != nil:
		s.ids[v] = id
	case len(s.extra) > few:
		// A query that computes makes many.
		s.ids = make(map[value.Value]value.ID, 2*few)
		for i, v := range s.extra {
			s.ids[v] = firstExtra - value.ID(i)
		}
	}
	return id, nil
}

// Value returns what an id of this query or of the graph stands for.
func (s *querySymbols) Value(id value.ID) value.Value {
	if s.isExtra(id) {
		return s.extra[firstExtra-id]
	}
	return s.interner.Value(id)
}

const firstExtra = value.FalseID - 1

// isExtra relies on the difference wrapping around for the ids above firstExtra.
func (s *querySymbols) isExtra(id value.ID) bool { return int(firstExtra-id) < len(s.extra) }

func (s *querySymbols) Compare(a, b value.ID) int {
	if s.isExtra(a) || s.isExtra(b) {
		return value.Compare(s.Value(a), s.Value(b))
	}
	return s.interner.Compare(a, b)
}
