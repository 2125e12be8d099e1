package dataflow

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// Errors that end the settling of a limited network.
var (
	ErrBudget    = errors.New("the evaluation went past a limit")
	ErrCancelled = errors.New("the evaluation was cancelled")
)

// Limits bounds what one Settle may do; 0 and nil are no limit.
type Limits struct {
	Derivations uint64 // rows that rules derive, counted as often as they are derived
	Steps       uint64 // about an eighth of a microsecond each, at worst
	// Rows bounds the derived rows of the whole network, failing bindings included.
	Rows uint64
	// Held is the memory that values take. ValueBytes bounds by how much computations may
	// let it grow, and HeldBytes up to where they may.
	Held                  func() uint64
	ValueBytes, HeldBytes uint64
	Cancelled             func() bool // asked every CancelSteps
	// CancelSteps is a few thousand if it is 0.
	CancelSteps uint64
}

// LimitKind names a member of Limits.
type LimitKind uint8

// The limits that a BudgetError tells of.
const (
	LimitDerivations LimitKind = iota
	LimitSteps
	LimitRows
	LimitValueBytes
	LimitHeldBytes
	// LimitTime is none of Limits: callers keep it by Cancelled. Its Max is in nanoseconds.
	LimitTime
)

// BudgetError says which limit a Settle went past, and in which clause. It wraps
// ErrBudget.
type BudgetError struct {
	Kind   LimitKind
	Max    uint64
	Clause Clause
}

func (e *BudgetError) Error() string {
	switch e.Kind {
	case LimitSteps:
		return fmt.Sprintf("the evaluation took more than %d steps", e.Max)
	case LimitRows:
		return fmt.Sprintf("more than %d derived rows would be kept", e.Max)
	case LimitValueBytes:
		return fmt.Sprintf("more than %d bytes of new values would be computed at once", e.Max)
	case LimitHeldBytes:
		return fmt.Sprintf("values would be computed while more than %d bytes of them are held",
			e.Max)
	case LimitTime:
		return fmt.Sprintf("the evaluation took longer than %v", time.Duration(e.Max))
	default:
		return fmt.Sprintf("more than %d rows would be derived at once", e.Max)
	}
}

func (e *BudgetError) Unwrap() error { return ErrBudget }

// Limits bounds what each Settle from now on may do.
func (n *Network) Limits(l Limits) {
	n.limits = l
	n.isLimited = l.Derivations|l.Steps|l.Rows|l.ValueBytes|l.HeldBytes != 0 ||
		l.Cancelled != nil
	n.liftLimits()
}

// meter counts what the present Settle does, and holds its limits.
type meter struct {
	isLimited bool
	steps     uint64 // since New
	stepsMax  uint64 // the next step count that needs attention
	stepsEnd  uint64 // the step count that is too much

	made      uint64 // derivations that came or went, since New
	returned  uint64 // rows that fell and came back, since New
	gained    uint64 // those that came in this Settle
	gainedMax uint64
	rows      uint64 // derived rows in all tables, visible or not
	rowsMax   uint64
	heldMax   uint64 // what computations may let Limits.Held become
}

// startMeter begins a Settle within the limits.
func (n *Network) startMeter() {
	orMax := func(limit uint64) uint64 {
		if limit == 0 {
			return math.MaxUint64
		}
		return limit
	}
	n.gained, n.gainedMax, n.rowsMax = 0, orMax(n.limits.Derivations), orMax(n.limits.Rows)
	n.stepsEnd, n.stepsMax, n.heldMax = math.MaxUint64, math.MaxUint64, math.MaxUint64
	if n.limits.Held != nil {
		n.heldMax = orMax(n.limits.HeldBytes)
		if n.limits.ValueBytes > 0 {
			n.heldMax = min(n.heldMax, n.limits.Held()+n.limits.ValueBytes)
		}
	}
	if n.limits.Steps > 0 {
		n.stepsEnd = n.steps + n.limits.Steps
		n.stepsMax = min(n.stepsEnd, n.steps+n.stepsPerCheck())
	}
	if n.limits.Cancelled != nil {
		n.stepsMax = min(n.stepsMax, n.steps+n.stepsPerCheck())
	}
}

// liftLimits lets the evaluation go on without limits until the next Settle.
func (n *Network) liftLimits() {
	n.gainedMax, n.rowsMax = math.MaxUint64, math.MaxUint64
	n.stepsEnd, n.stepsMax, n.heldMax = math.MaxUint64, math.MaxUint64, math.MaxUint64
}

// keep counts derived rows that are kept from now on, or no longer.
func (n *Network) keep(rows int) {
	n.rows += uint64(rows)
	if rows > 0 && n.rows > n.rowsMax {
		n.exceed(LimitRows, n.limits.Rows)
	}
}

// hold looks at what is held after a computation that may have added to it.
func (n *Network) hold() {
	if n.heldMax == math.MaxUint64 || n.limits.Held() <= n.heldMax {
		return
	}
	if n.heldMax == n.limits.HeldBytes {
		n.exceed(LimitHeldBytes, n.limits.HeldBytes)
	} else {
		n.exceed(LimitValueBytes, n.limits.ValueBytes)
	}
}

// count counts steps, and now and then looks at the limits.
func (n *Network) count(steps uint64) {
	n.steps += steps
	if n.steps >= n.stepsMax {
		n.checkSteps()
	}
}

func (n *Network) checkSteps() {
	switch {
	case n.err != nil:
	case n.steps >= n.stepsEnd:
		n.exceed(LimitSteps, n.limits.Steps)
	case n.limits.Cancelled != nil && n.limits.Cancelled():
		n.halt(ErrCancelled)
	}
	n.stepsMax = min(n.stepsEnd, n.steps+n.stepsPerCheck())
}

func (n *Network) stepsPerCheck() uint64 {
	if n.limits.CancelSteps > 0 {
		return n.limits.CancelSteps
	}
	return stepsPerCheck
}

// exceed ends the evaluation in progress: the running plan went past a limit.
func (n *Network) exceed(kind LimitKind, limit uint64) {
	n.halt(&BudgetError{Kind: kind, Max: limit, Clause: n.plan.rule.clause})
}

// halt ends the evaluation in progress.
func (n *Network) halt(err error) {
	if n.err == nil {
		n.err = err
	}
	n.stop = true
}

// trail remembers the changes of inputs since a mark, so that they can be undone.
type trail struct {
	// cells holds for each change the row and then its predicate's number times two,
	// plus 1 if the row was put in.
	cells   []value.ID
	settled int // the length of cells at the last Settle
	marked  bool
	off     bool // changes are being undone
}

// Mark makes all changes of inputs from now on, settled or not, ones that Rollback
// undoes. Everything before must be settled. It ends an earlier mark.
func (n *Network) Mark() {
	n.Forget()
	n.trail.marked = true
}

// Forget ends the mark and keeps the changes since.
func (n *Network) Forget() {
	if len(n.trail.cells) > n.trail.settled {
		panic("dataflow: a mark begins or ends amid unsettled changes")
	}
	n.clearTrail()
	n.trail.marked = false
}

// Rollback undoes all changes of inputs since Mark and settles, without a limit.
// Rows that were deleted since, demands included, may get other ids.
func (n *Network) Rollback() {
	if !n.trail.marked {
		panic("dataflow: a rollback without a mark")
	}
	n.undo(0)
	n.clearTrail()
	n.trail.marked = false
}

func (n *Network) clearTrail() {
	t := &n.trail
	if cap(t.cells) > queueKept {
		t.cells = nil
	}
	t.cells, t.settled = t.cells[:0], 0
}

// note remembers that a row was put in or taken out.
func (n *Network) note(p *predicate, row []value.ID, in value.ID) {
	if !n.trail.off {
		n.trail.cells = append(append(n.trail.cells, row...), value.ID(p.number)<<1|in)
	}
}

// undo takes the newest changes of inputs back until the trail has a length, and
// settles.
func (n *Network) undo(length int) {
	n.err, n.stop = nil, false
	n.liftLimits()
	n.trail.off = true
	cells := n.trail.cells
	for len(cells) > length {
		last := cells[len(cells)-1]
		cells = cells[:len(cells)-1]
		p := n.predicates[last>>1]
		row := cells[len(cells)-p.arity:]
		cells = cells[:len(cells)-p.arity]
		if last&1 == 0 {
			n.want(p, row)
		} else if id, ok := p.table.Find(row); ok {
			n.unwant(p, id)
		}
	}
	n.trail.cells, n.trail.off = cells, false
	n.settleAll()
	if n.err != nil {
		panic("dataflow: changes cannot be undone")
	}
}

// takeBack undoes what the plans that read a row did after it became visible (sign
// 1) or before it becomes invisible (-1), when they were stopped. The same plans
// meet the same derivations in the same order, since nothing that they read has
// changed, and undo as many as were made; those that come before those that go, so
// that no count falls below what is left.
func (n *Network) takeBack(p *predicate, id relation.RowID, sign int, s scope, made uint64) {
	made = n.made - made
	n.liftLimits()
	for _, undoing := range []int{1, -1} {
		n.undoing, n.undoLeft, n.stop = undoing, made, false
		n.read(p, id, sign, s)
	}
	n.undoing, n.stop = 0, true
}

// undoes reports whether the present derivation is one to be undone now.
func (n *Network) undoes() bool {
	if n.undoLeft == 0 {
		n.stop = true
		return false
	}
	n.undoLeft--
	return n.sign == n.undoing
}
