package engine

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// PinsMax is how many revisions can be pinned at once, with those whose traces are
// still being swept.
const PinsMax = relation.PinsMax

// Errors of pins.
var (
	// ErrPins says that as many revisions are pinned as can be.
	ErrPins = errors.New("too many revisions are pinned")
	// ErrPinExpired says that a pin has reached its age limit or was closed.
	ErrPinExpired = errors.New("the pinned revision is no longer kept")
)

// Pin keeps the facts and the program of one revision readable while the graph goes
// on. Like all of an engine it is for the engine's goroutine: a query on it takes its
// turns between transactions. While there are pins, rows that are deleted stay in
// memory until no pin sees them, and writes cost a little more.
type Pin struct {
	engine   *Engine
	number   relation.Pin
	revision uint64
	expires  int64 // on the engine's clock; 0 is never
	program  *analysis.Program
	prepared *dataflow.Prepared
	tables   []*relation.Relation // some are nil
	swept    int                  // tables that are done after the end
	queries  []*Evaluation        // that are not done
	ended    bool
}

// Pin pins the present revision until Close, or for ageMax nanoseconds on the engine's
// clock (0: no limit). The only error is ErrPins.
func (e *Engine) Pin(ageMax int64) (*Pin, error) {
	e.tendPins()
	used := uint(0)
	for _, p := range e.pins {
		used |= 1 << p.number
	}
	number := relation.Pin(1)
	for ; used>>number&1 != 0; number++ {
	}
	if number > PinsMax {
		return nil, ErrPins
	}
	p := &Pin{
		engine: e, number: number, revision: e.revision,
		program: e.program, prepared: e.prepared, tables: e.tables,
	}
	if ageMax > 0 {
		p.expires = e.now() + ageMax
	}
	for _, table := range p.tables {
		if table != nil {
			table.Pin(number)
		}
	}
	e.pins = append(e.pins, p)
	return p, nil
}

// Pins returns how many revisions are pinned or have left traces.
func (e *Engine) Pins() int { return len(e.pins) }

// Revision returns the pinned revision.
func (p *Pin) Revision() uint64 { return p.revision }

// Program returns the program that was deployed at the pinned revision.
func (p *Pin) Program() *analysis.Program { return p.program }

// Close ends the pin and what is being evaluated on it. Its traces go bit by bit with
// the transactions and SweepPins that follow.
func (p *Pin) Close() { p.end() }

func (p *Pin) end() {
	if p.ended {
		return
	}
	p.ended = true
	for _, v := range slices.Clone(p.queries) {
		v.abandon()
	}
	for _, table := range p.tables {
		if table != nil {
			table.Unpin(p.number)
		}
	}
}

// sweep gives back some of what an ended pin held, rows changed rows at most, and
// reports whether there is more.
func (p *Pin) sweep(rows int) (more bool) {
	for p.swept < len(p.tables) {
		table := p.tables[p.swept]
		if table != nil && table.Sweep(p.number, rows) {
			return true
		}
		if p.swept++; table != nil {
			rows /= 2 // a program of many tables goes bit by bit, too
		}
		if rows == 0 {
			return true
		}
	}
	return false
}

// tendedRows are how many rows a transaction sweeps: more than it changes in most
// cases, so that what pins leave goes even if nobody calls SweepPins.
const tendedRows = 16

// tendPins ends the pins that are too old and sweeps a little.
func (e *Engine) tendPins() {
	if len(e.pins) > 0 {
		e.sweepPins(tendedRows)
	}
}

func (e *Engine) sweepPins(rows int) (more bool) {
	now := e.now()
	kept := e.pins[:0]
	for _, p := range e.pins {
		if p.expires != 0 && now >= p.expires {
			p.end()
		}
		if !p.ended {
			kept = append(kept, p)
			continue
		}
		if p.sweep(rows) {
			kept, more = append(kept, p), true
		}
	}
	clear(e.pins[len(kept):])
	e.pins = kept
	return more
}

// sweptRows are swept between two looks at the clock.
const sweptRows = 128

// SweepPins ends the pins that are too old, gives back for about so many nanoseconds
// what ended ones held, and reports whether there is more. Call it now and then while
// there are Pins, and while it says so.
func (e *Engine) SweepPins(nanos int64) (more bool) {
	for until := e.now() + nanos; e.sweepPins(sweptRows); {
		if e.clock == nil || e.now() >= until {
			return true
		}
	}
	return false
}

// ClosePins ends all pins.
func (e *Engine) ClosePins() {
	for _, p := range e.pins {
		p.end()
	}
}

// Evaluation is a query on a pin, which is worked at in turns.
type Evaluation struct {
	pin    *Pin
	next   func() (struct{}, bool)
	stop   func()
	until  int64 // the end of the turn
	isDone bool
	result QueryResult
	err    error
	// Of an explanation, instead of a result.
	proof   *proof.Proof
	absence *proof.Absence
}

// Query begins to answer a query that was analysed against the pin's program, as
// Engine.Query would at the pin's revision. Nothing is evaluated before the first
// Step. Its errors wrap ErrPinExpired, ErrArity, ErrType or ErrStaleQuery.
func (p *Pin) Query(q *analysis.Query, parameters []value.Value, opt QueryOptions) (
	*Evaluation, error,
) {
	e := p.engine
	e.tendPins()
	if p.ended {
		return nil, ErrPinExpired
	}
	v := &Evaluation{pin: p, result: QueryResult{Columns: q.Columns}}
	answer := p.evaluator(q, parameters)
	answer.options = opt
	if err := answer.check(); err != nil {
		return nil, err
	}
	v.work(&answer, opt.Cancelled, func() {
		v.err = answer.evaluate()
		v.result = answer.out
	})
	return v, nil
}

// evaluator returns one that reads through the pin.
func (p *Pin) evaluator(q *analysis.Query, parameters []value.Value) evaluator {
	e := p.engine
	return evaluator{
		query: q, parameters: slices.Clone(parameters), limits: e.limits,
		program: p.program, prepared: p.prepared, tables: p.tables, pin: p.number,
		ticksPerPause: e.ticksPerPause,
		symbols:       querySymbols{interner: e.symbols, held: map[value.ID]struct{}{}},
	}
}

// work lists the evaluation with its pin. What it does, by the evaluator, is done in
// the turns that Step gives it.
func (v *Evaluation) work(by *evaluator, cancelled func() bool, do func()) {
	e := v.pin.engine
	v.next, v.stop = iter.Pull(func(yield func(struct{}) bool) {
		by.stops = func() bool {
			if e.clock != nil && e.now() < v.until {
				return false
			}
			return !yield(struct{}{}) || cancelled != nil && cancelled()
		}
		do()
		by.symbols.release()
	})
	v.pin.queries = append(v.pin.queries, v)
}

// Step works at the query for about so many nanoseconds on the engine's clock, a few
// microseconds more at times, and reports whether it is done, well or not. Without a
// clock a step is as short as can be. Options' Cancelled is asked once for each step.
func (v *Evaluation) Step(nanos int64) (done bool) {
	e := v.pin.engine
	now := e.now()
	if p := v.pin; p.expires != 0 && now >= p.expires {
		p.end()
	}
	if v.isDone {
		return true
	}
	v.until = now + nanos
	if _, more := v.next(); !more {
		v.finish()
	}
	return v.isDone
}

// Result returns the answer of a query that is done. Its errors wrap those of
// Engine.Query, or ErrPinExpired if the pin ended before the query did.
func (v *Evaluation) Result() (QueryResult, error) {
	v.result.Join()
	return v.Unjoined()
}

// Unjoined is Result, but the rows are there after Join only, which takes its time and
// needs the engine no more.
func (v *Evaluation) Unjoined() (QueryResult, error) {
	if !v.isDone {
		panic("engine: the result of a query that is not done")
	}
	return v.result, v.err
}

// Close ends the query, if it is not done, with ErrCancelled. The pin remains.
func (v *Evaluation) Close() {
	if !v.isDone {
		v.stop()
		v.finish()
		v.result.Rows, v.result.pieces = nil, nil
		v.err = fmt.Errorf("query: %w", ErrCancelled)
	}
}

// abandon ends the query since its pin ends.
func (v *Evaluation) abandon() {
	v.Close()
	v.err = fmt.Errorf("query: %w", ErrPinExpired)
}

// finish takes the query off its pin's list.
func (v *Evaluation) finish() {
	v.isDone, v.next, v.stop = true, nil, nil
	v.pin.queries = slices.DeleteFunc(v.pin.queries, func(o *Evaluation) bool { return o == v })
}
