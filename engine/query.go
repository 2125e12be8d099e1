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
	v := evaluator{
		query: q, parameters: parameters, options: opt, limits: e.limits,
		program: e.program, prepared: e.prepared, tables: e.tables,
		symbols: querySymbols{interner: e.symbols},
	}
	if err := v.check(); err != nil {
		return QueryResult{Columns: q.Columns}, err
	}
	return v.evaluate()
}

// evaluator answers one query.
type evaluator struct {
	query      *analysis.Query
	parameters []value.Value
	options    QueryOptions
	limits     Limits
	program    *analysis.Program
	prepared   *dataflow.Prepared
	tables     []*relation.Relation
	symbols    querySymbols

	// Of a query that reads through a pin: stops is asked often, may let other things
	// happen meanwhile, and reports whether the evaluation is to end.
	pin     relation.Pin
	stops   func() bool
	stopped bool
	ticks   uint64
	// ticksPerPause is how many steps are made between two questions.
	ticksPerPause uint64
}

// ticksPerPause is how many steps are made, or rows chosen or compared, between two
// questions whether a pinned query is to stop.
const ticksPerPause = 128

// check reports what makes a query impossible to begin with.
func (v *evaluator) check() error {
	if err := checkValues(v.parameters, v.query.Parameters); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	if !inProgram(v.query, v.program) {
		return ErrStaleQuery
	}
	return nil
}

func (v *evaluator) evaluate() (QueryResult, error) {
	out := QueryResult{Columns: v.query.Columns}
	// All rows are found and then the wanted ones chosen, which for one evaluation is
	// less work than to keep them in order.
	unordered := *v.query
	unordered.Order, unordered.Limit, unordered.Offset = nil, 0, 0
	network, err := dataflow.New(dataflow.Config{
		Program: v.prepared, Symbols: &v.symbols, Tables: v.tables,
		Goals: []*analysis.Query{&unordered}, Transient: true, Pin: v.pin,
	})
	if err != nil {
		return out, err
	}
	key := make([]value.ID, len(v.parameters))
	for i, p := range v.parameters {
		if key[i], err = v.symbols.ID(p); err != nil {
			return out, err
		}
	}
	limits := dataflow.Limits{
		Steps: v.options.Budget, Derivations: v.limits.CommitRows,
		Held: v.symbols.Held, ValueBytes: v.limits.CommitBytes,
		Cancelled: v.options.Cancelled,
	}
	if v.stops != nil {
		limits.Cancelled, limits.CancelSteps = v.stops, v.ticksPerPause
	}
	network.Limits(limits)
	network.Demand(0, key)
	if _, _, err := network.Settle(); err != nil {
		return out, fmt.Errorf("query: %w", named(err, v.program, nil))
	}
	if cause, ok := network.Cause(0); ok {
		errs := ruleErrors(cause, v.program, nil)
		if network.Unsure(0) || v.options.whole && cause.Clause.Rule < 0 {
			return out, &RowErrors{Errors: errs}
		}
		out.Errors = &errs
	}
	v.choose(&out, network.Result(0), network.Outputs(0))
	if v.stopped {
		return QueryResult{Columns: out.Columns}, fmt.Errorf("query: %w", ErrCancelled)
	}
	return out, nil
}

// tick lets a pinned query pause now and then. When it has to stop, the rest is done
// at once and wrong.
func (v *evaluator) tick() {
	if v.stops == nil || v.stopped {
		return
	}
	if v.ticks++; v.ticks%v.ticksPerPause == 0 {
		v.stopped = v.stops()
	}
}

// choose takes the rows that a query and its options want from all that it has.
func (v *evaluator) choose(out *QueryResult, table *relation.Relation,
	outputs []dataflow.Source,
) {
	first, end := 0, table.Len()
	skip := func(n int) { first = min(max(n, 0)+first, end) }
	if q := v.query; q.Limit > 0 {
		skip(q.Offset)
		end = first + min(q.Limit, end-first)
	}
	skip(v.options.Offset)
	if most := v.options.MaxRows; most > 0 && end-first > most {
		end, out.Truncated = first+most, true
	}
	compare := func(a, b relation.RowID) int {
		return v.compare(table.Row(a), table.Row(b), outputs)
	}
	rows := v.smallest(table, end, compare)
	slices.SortFunc(rows, compare)
	rows = rows[min(first, len(rows)):]
	out.Count = len(rows)
	out.Rows = make([]value.Value, 0, len(rows)*len(outputs))
	for _, id := range rows {
		if v.tick(); v.stopped {
			return
		}
		for _, o := range outputs {
			cell := o.Constant
			if o.Column >= 0 {
				cell = table.Row(id)[o.Column]
			}
			out.Rows = append(out.Rows, v.symbols.Value(cell))
		}
	}
}

// compare compares two rows in the query's order.
func (v *evaluator) compare(x, y []value.ID, outputs []dataflow.Source) int {
	if v.tick(); v.stopped {
		return 0
	}
	for _, by := range v.query.Order {
		o := outputs[by.Column]
		if o.Column < 0 || x[o.Column] == y[o.Column] {
			continue
		}
		if by.Descending {
			return v.symbols.Compare(y[o.Column], x[o.Column])
		}
		return v.symbols.Compare(x[o.Column], y[o.Column])
	}
	for _, o := range outputs {
		if o.Column >= 0 && x[o.Column] != y[o.Column] {
			return v.symbols.Compare(x[o.Column], y[o.Column])
		}
	}
	return 0
}

// smallest returns the n smallest visible rows, in no order. Sorting all of them
// would take longer than finding them did.
func (v *evaluator) smallest(table *relation.Relation, n int,
	compare func(a, b relation.RowID) int,
) []relation.RowID {
	heap := make([]relation.RowID, 0, n) // when it is full, the largest first
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
	isSorted := n == table.Len() // nothing is to be left out
	for id, ok := table.NextVisible(0); ok && n > 0; id, ok = table.NextVisible(id + 1) {
		if v.tick(); v.stopped {
			break
		}
		if len(heap) < n {
			heap = append(heap, id)
			for i := n/2 - 1; len(heap) == n && !isSorted && i >= 0; i-- {
				sink(i)
			}
		} else if compare(id, heap[0]) < 0 {
			heap[0] = id
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
	bytes    uint64                   // of the texts of extra
	// held are the ids of the graph that a pinned query has met on its own, and that
	// must not become those of other values before it ends; nil for another query.
	held map[value.ID]struct{}
}

func (s *querySymbols) ID(v value.Value) (value.ID, error) {
	if s.held != nil {
		return s.heldID(v)
	}
	if id, ok := s.interner.Lookup(v); ok {
		return id, nil
	}
	if id, ok := s.extraID(v); ok {
		return id, nil
	}
	return s.newID(v)
}

// heldID is ID for a pinned query. What the graph did not know at first, it may know
// now, but no row that the query reads holds it.
func (s *querySymbols) heldID(v value.Value) (value.ID, error) {
	if id, ok := s.extraID(v); ok {
		return id, nil
	}
	id, ok := s.interner.Lookup(v)
	if !ok {
		return s.newID(v)
	}
	if _, ok := s.held[id]; !ok && id.IsCounted() {
		s.interner.Retain(id)
		s.held[id] = struct{}{}
	}
	return id, nil
}

// release lets go of the held ids.
func (s *querySymbols) release() {
	for id := range s.held {
		s.interner.Release(id)
	}
	s.held = nil
}

// extraID returns the id of a value that the graph has never seen.
func (s *querySymbols) extraID(v value.Value) (value.ID, bool) {
	if s.ids != nil {
		id, ok := s.ids[v]
		return id, ok
	}
	i := slices.Index(s.extra, v)
	return firstExtra - value.ID(i), i >= 0
}

// newID makes the id of a value.
func (s *querySymbols) newID(v value.Value) (value.ID, error) {
	const few = 16
	if len(s.extra) >= s.interner.Room() {
		return 0, ErrFull
	}
	id := firstExtra - value.ID(len(s.extra))
	s.extra = append(s.extra, v)
	s.bytes += uint64(len(v.Str()))
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

// Held returns about how many bytes the values of the query's own take.
func (s *querySymbols) Held() uint64 {
	const each = 96 // in extra and, twice as large as need be, in ids
	return uint64(len(s.extra))*each + s.bytes
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
