package engine

import (
	"fmt"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// WhyOptions bounds an explanation.
type WhyOptions struct {
	proof.Limits
	// Budget and Cancelled are those of QueryOptions, for all that an explanation asks.
	Budget    uint64
	Cancelled func() bool
}

// Why proves the first rows that a query gives, in its order. The query was analysed
// against the present program. Its errors are those of Query, *RowErrors if rows may be
// wrong among them; a budget that is spent when the rows are known cuts the proof
// instead.
func (e *Engine) Why(q *analysis.Query, parameters []value.Value, opt WhyOptions) (
	*proof.Proof, error,
) {
	m := newModel(e.evaluator(q, parameters), opt)
	if err := m.check(); err != nil {
		return nil, err
	}
	return m.why(q, parameters, opt)
}

// WhyNot says why a query gives no row. It is otherwise like Why, but does not mind
// row errors.
func (e *Engine) WhyNot(q *analysis.Query, parameters []value.Value, opt WhyOptions) (
	*proof.Absence, error,
) {
	m := newModel(e.evaluator(q, parameters), opt)
	if err := m.check(); err != nil {
		return nil, err
	}
	return m.whyNot(q, parameters, opt)
}

func (e *Engine) evaluator(q *analysis.Query, parameters []value.Value) evaluator {
	return evaluator{
		query: q, parameters: parameters, limits: e.limits,
		program: e.program, prepared: e.prepared, tables: e.tables,
		symbols: querySymbols{interner: e.symbols},
	}
}

// Why begins to prove rows at the pin's revision, as Engine.Why does at the present
// one. The proof is that of Explanation; else it is like Query.
func (p *Pin) Why(q *analysis.Query, parameters []value.Value, opt WhyOptions) (
	*Evaluation, error,
) {
	v, m, err := p.explain(q, parameters, opt)
	if err == nil {
		v.work(&m.evaluator, opt.Cancelled, func() {
			v.proof, v.err = m.why(q, m.given, opt)
		})
	}
	return v, err
}

// WhyNot is to Why as Engine.WhyNot is to Engine.Why.
func (p *Pin) WhyNot(q *analysis.Query, parameters []value.Value, opt WhyOptions) (
	*Evaluation, error,
) {
	v, m, err := p.explain(q, parameters, opt)
	if err == nil {
		v.work(&m.evaluator, opt.Cancelled, func() {
			v.absence, v.err = m.whyNot(q, m.given, opt)
		})
	}
	return v, err
}

func (p *Pin) explain(q *analysis.Query, parameters []value.Value, opt WhyOptions) (
	*Evaluation, *model, error,
) {
	p.engine.tendPins()
	if p.ended {
		return nil, nil, ErrPinExpired
	}
	m := newModel(p.evaluator(q, parameters), opt)
	if err := m.check(); err != nil {
		return nil, nil, err
	}
	return &Evaluation{pin: p}, m, nil
}

// Explanation returns what Pin.Why or Pin.WhyNot has found, when it is done.
func (v *Evaluation) Explanation() (*proof.Proof, *proof.Absence, error) {
	if !v.isDone {
		panic("engine: an explanation that is not done")
	}
	if v.err != nil {
		return nil, nil, v.err
	}
	return v.proof, v.absence, nil
}

// model answers the questions of an explanation.
type model struct {
	evaluator
	given     []value.Value // the parameters; the evaluator's are those of each question
	steps     uint64        // left
	limited   bool
	cancelled func() bool
	refuses   bool // the first query, if its rows may be wrong
}

func newModel(v evaluator, opt WhyOptions) *model {
	return &model{
		evaluator: v, given: v.parameters, steps: opt.Budget, limited: opt.Budget > 0,
		cancelled: opt.Cancelled,
	}
}

func (m *model) why(q *analysis.Query, parameters []value.Value, opt WhyOptions) (
	*proof.Proof, error,
) {
	m.refuses = true
	return proof.Why(m, q, parameters, opt.Limits)
}

func (m *model) whyNot(q *analysis.Query, parameters []value.Value, opt WhyOptions) (
	*proof.Absence, error,
) {
	return proof.WhyNot(m, q, parameters, opt.Limits)
}

// Program implements proof.Model.
func (m *model) Program() *analysis.Program { return m.program }

// derive settles a network for a query at some keys. All networks of a model share
// its budget.
func (m *model) derive(p *dataflow.Prepared, tables []*relation.Relation, q *analysis.Query,
	keys [][]value.Value,
) (*dataflow.Network, error) {
	if m.limited && m.steps == 0 {
		return nil, fmt.Errorf("explanation: %w", ErrBudget)
	}
	network, err := dataflow.New(dataflow.Config{
		Program: p, Symbols: &m.symbols, Tables: tables,
		Goals: []*analysis.Query{q}, Transient: true, Pin: m.pin,
	})
	if err != nil {
		return nil, err
	}
	limits := dataflow.Limits{
		Steps: m.steps, Derivations: m.limits.CommitRows, Cancelled: m.cancelled,
		Held: m.symbols.Held, ValueBytes: m.limits.CommitBytes,
	}
	if m.stops != nil {
		limits.Cancelled, limits.CancelSteps = m.stops, m.ticksPerPause
	}
	network.Limits(limits)
	for _, values := range keys {
		key := make([]value.ID, len(values))
		for i, v := range values {
			if key[i], err = m.symbols.ID(v); err != nil {
				return nil, err
			}
		}
		network.Demand(0, key)
	}
	_, _, err = network.Settle()
	m.spend(network.Steps())
	if err != nil {
		return nil, fmt.Errorf("explanation: %w", named(err, m.program, nil))
	}
	return network, nil
}

func (m *model) spend(steps uint64) {
	// What a network costs besides: its compilation.
	const networkSteps = 200
	m.steps -= min(m.steps, steps+networkSteps)
}

// Ask implements proof.Model.
func (m *model) Ask(p *analysis.Program, q *analysis.Query, parameters []value.Value, most int) (
	[][]value.Value, int, error,
) {
	prepared, tables := m.prepared, m.tables
	if p != m.program {
		prepared = dataflow.Prepare(p)
		tables = make([]*relation.Relation, len(p.Relations))
		copy(tables, m.tables)
	}
	unordered := *q
	unordered.Order, unordered.Limit, unordered.Offset = nil, 0, 0
	network, err := m.derive(prepared, tables, &unordered, [][]value.Value{parameters})
	if err != nil {
		return nil, 0, err
	}
	if cause, ok := network.Cause(0); ok && m.refuses && network.Unsure(0) {
		return nil, 0, &RowErrors{Errors: ruleErrors(cause, m.program, nil)}
	}
	m.refuses = false
	result := network.Result(0)
	count := result.Len()
	if q.Limit > 0 {
		count = max(min(count-q.Offset, q.Limit), 0)
	}
	m.query, m.options, m.out = q, QueryOptions{MaxRows: most}, QueryResult{}
	if err := m.choose(network); err != nil {
		return nil, 0, fmt.Errorf("explanation: %w", ErrCancelled)
	}
	all := &m.out
	all.Join()
	rows := make([][]value.Value, all.Count)
	for i := range rows {
		rows[i] = all.Rows[i*len(q.Output) : (i+1)*len(q.Output)]
	}
	return rows, count, nil
}

// Trace implements proof.Model.
func (m *model) Trace(q *analysis.Query, keys [][]value.Value) (proof.Trace, error) {
	network, err := m.derive(dataflow.PreparePlain(m.program), m.tables, q, keys)
	if err != nil {
		return nil, err
	}
	return trace{network.Trace(), &m.symbols}, nil
}

// trace is a dataflow.Trace in values.
type trace struct {
	*dataflow.Trace
	symbols *querySymbols
}

// Match implements proof.Trace.
func (t trace) Match(id analysis.RelationID, pattern []value.Value,
	yield func(row []value.Value, age dataflow.Age) bool,
) {
	var columns relation.Columns
	var key []value.ID
	for c, v := range pattern {
		if v.Kind() == value.Invalid {
			continue
		}
		cell, err := t.symbols.ID(v)
		if err != nil {
			return // there is no room for a value that no row holds
		}
		columns |= 1 << c
		key = append(key, cell)
	}
	t.Trace.Match(id, columns, key, func(cells []value.ID, age dataflow.Age) bool {
		row := make([]value.Value, len(cells))
		for c, cell := range cells {
			row[c] = t.symbols.Value(cell)
		}
		return yield(row, age)
	})
}
