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

	// pieces are the rows of an Unjoined answer, until Join.
	pieces [][]value.Value
}

// Join puts the rows of an Unjoined answer into Rows.
func (r *QueryResult) Join() {
	if r.pieces != nil {
		r.Rows, r.pieces = slices.Concat(r.pieces...), nil
	}
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
// own and keeps nothing: no rows, no demand, no symbols, no index. What it compiled for
// base relations it may use again. Its errors wrap ErrBudget, ErrCancelled, ErrArity,
// ErrType or ErrStaleQuery, or are *RowErrors.
func (e *Engine) Query(q *analysis.Query, parameters []value.Value, opt QueryOptions) (
	QueryResult, error,
) {
	v := &e.asking
	v.query, v.parameters, v.options, v.limits = q, parameters, opt, e.limits
	v.program, v.prepared, v.tables = e.program, e.prepared, e.tables
	v.symbols.interner = e.symbols
	err := e.answer(v)
	out := v.out
	v.forget()
	return out, err
}

// answer answers a query by what is compiled of one like it, or else by a network of
// its own.
func (e *Engine) answer(v *evaluator) error {
	v.out = QueryResult{Columns: v.query.Columns}
	if err := v.check(); err != nil {
		return err
	}
	known := e.compiled.find(e, v.query, v.parameters)
	if known == nil {
		return v.evaluate()
	}
	key, err := v.keyOf(e.compiled.values)
	if err != nil {
		return err
	}
	n := known.network
	n.Limits(v.bounds())
	ok, err := v.read(n, key)
	if n.Spent() {
		e.compiled.drop()
	}
	if !ok && err == nil {
		v.indirect = true
		return v.evaluate()
	}
	return err
}

// forget makes the evaluator ready for another query.
func (v *evaluator) forget() {
	const few = 64
	v.query, v.parameters, v.options, v.out = nil, nil, QueryOptions{}, QueryResult{}
	v.program, v.prepared, v.tables, v.indirect = nil, nil, nil, false
	s := &v.symbols
	if cap(s.extra) > few {
		s.extra = nil
	}
	clear(s.extra)
	s.extra, s.ids, s.bytes = s.extra[:0], nil, 0
	v.rows.end()
}

// evaluator answers one query.
type evaluator struct {
	query      *analysis.Query
	parameters []value.Value
	options    QueryOptions
	out        QueryResult
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

	rows collector
	key  []value.ID           // scratch
	take func(row []value.ID) // of rows
	// indirect tells that the query has row errors, which only tables can tell of.
	indirect bool
	held     func() uint64 // of symbols
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

// evaluate answers the query by a network of its own.
func (v *evaluator) evaluate() error {
	v.out = QueryResult{Columns: v.query.Columns}
	// All rows are found and then the wanted ones chosen, which for one evaluation is
	// less work than to keep them in order.
	unordered := *v.query
	unordered.Order, unordered.Limit, unordered.Offset = nil, 0, 0
	network, err := dataflow.New(dataflow.Config{
		Program: v.prepared, Symbols: &v.symbols, Tables: v.tables,
		Goals: []*analysis.Query{&unordered}, Transient: true, Pin: v.pin,
	})
	if err != nil {
		return err
	}
	key, err := v.keyOf(v.parameters)
	if err != nil {
		return err
	}
	network.Limits(v.bounds())
	if network.IsDirect() && !v.indirect {
		if ok, err := v.read(network, key); ok || err != nil {
			return err
		}
	}
	network.Demand(0, key)
	if _, _, err := network.Settle(); err != nil {
		return fmt.Errorf("query: %w", named(err, v.program, nil))
	}
	if cause, ok := network.Cause(0); ok {
		errs := ruleErrors(cause, v.program, nil)
		if network.Unsure(0) || v.options.whole && cause.Clause.Rule < 0 {
			return &RowErrors{Errors: errs}
		}
		v.out.Errors = &errs
	}
	return v.choose(network)
}

// choose takes the rows that a query and its options want from a settled network.
func (v *evaluator) choose(network *dataflow.Network) error {
	v.rows.begin(v, network.Outputs(0), false)
	table := network.Result(0)
	for id, ok := table.NextVisible(0); ok && !v.stopped; id, ok = table.NextVisible(id + 1) {
		v.tick()
		v.rows.take(table.Row(id))
	}
	return v.finish()
}

// keyOf returns the ids of parameters.
func (v *evaluator) keyOf(parameters []value.Value) ([]value.ID, error) {
	v.key = v.key[:0]
	for _, p := range parameters {
		id, err := v.symbols.ID(p)
		if err != nil {
			return nil, err
		}
		v.key = append(v.key, id)
	}
	return v.key, nil
}

// bounds are the limits of the query's network.
func (v *evaluator) bounds() dataflow.Limits {
	if v.held == nil {
		v.held = v.symbols.Held
	}
	limits := dataflow.Limits{
		Steps: v.options.Budget, Derivations: v.limits.CommitRows,
		Held: v.held, ValueBytes: v.limits.CommitBytes,
		Cancelled: v.options.Cancelled,
	}
	if v.stops != nil {
		limits.Cancelled, limits.CancelSteps = v.stops, v.ticksPerPause
	}
	return limits
}

// read answers the query by a network that is direct, and reports whether it could.
func (v *evaluator) read(n *dataflow.Network, key []value.ID) (bool, error) {
	v.rows.begin(v, n.Outputs(0), n.Repeats())
	if v.take == nil {
		v.take = v.rows.take
	}
	ok, err := n.Read(&v.symbols, key, v.take)
	if err != nil {
		return false, fmt.Errorf("query: %w", named(err, v.program, nil))
	}
	if ok {
		err = v.finish()
	}
	return ok, err
}

// finish puts the rows that were collected into the answer.
func (v *evaluator) finish() error {
	v.rows.finish()
	if v.stopped {
		v.out = QueryResult{Columns: v.out.Columns}
		return fmt.Errorf("query: %w", ErrCancelled)
	}
	return nil
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
