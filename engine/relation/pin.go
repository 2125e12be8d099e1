package relation

import (
	"math/bits"
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

// Pin names a state of a relation that can be read while the relation goes on: Now
// is the present one, the others are numbers from 1 to PinsMax that the caller gives
// out. It begins with Pin. After Unpin nobody may read it, and the number is free
// again when Sweep has done its work.
//
// A row that changes its visibility while there are pins says so in its own flags:
// which pins know it differently, and what they know. Nobody pays for that but
// writers, while there are pins. A row that a pin needs stays in its place, in the
// lists and in the set, after it was hidden and even dropped (it lingers); rows that
// came and went since the pin do not.
type Pin uint8

const (
	// Now is the present state.
	Now Pin = 0
	// PinsMax is how many states can be pinned at once.
	PinsMax = 8
)

// The flags of this package besides Visible. For pin p, bit p-1 of the known mask
// says that the row has changed since the pin, and that of the seen mask that it was
// visible then. A free record keeps what is known of its row id.
const (
	lingering Flags = 1 << 14 // invisible, but linked, since a pin sees it
	dropped   Flags = 1 << 15 // lingers only, the caller has dropped it

	knownShift = 16
	seenShift  = 24
	pinMask    = 1<<PinsMax - 1

	knownMask Flags = pinMask << knownShift
	seenMask  Flags = pinMask << seenShift
)

// pinned is what a relation keeps for its pins.
type pinned struct {
	pins      uint8 // bit p-1 for pin p
	deferring uint8 // pins, and those whose traces are still being swept
	lingerers int   // lingering rows
	guards    []RowID
	states    [PinsMax]pinState
}

type pinState struct {
	made    uint32 // row ids at the pin
	visible int
	changed rowList
}

// Pin pins the present state under a number that is free.
func (r *Relation) Pin(p Pin) {
	bit := uint8(1) << (p - 1)
	if r.deferring&bit != 0 {
		panic("relation: a pin is taken twice")
	}
	r.pins |= bit
	r.deferring |= bit
	r.states[p-1].made, r.states[p-1].visible = r.made, r.visible
}

// Unpin ends a pin. What it held is given back by Sweep.
func (r *Relation) Unpin(p Pin) {
	r.pins &^= 1 << (p - 1)
}

// Sweep gives back what an ended pin held, n changed rows at most at a time, and
// reports whether there is more.
func (r *Relation) Sweep(p Pin, n int) (more bool) {
	bit := uint8(1) << (p - 1)
	if r.pins&bit != 0 || r.deferring&bit == 0 {
		return false
	}
	list := &r.states[p-1].changed
	for range n {
		id, ok := list.pop()
		if !ok {
			r.states[p-1] = pinState{}
			if r.deferring &^= bit; r.deferring == 0 {
				r.dropForgotten()
			}
			return false
		}
		if uint32(id) < r.made { // else the relation was empty meanwhile
			r.forget(id, Flags(bit))
		}
	}
	return true
}

// forget takes a pin's traces off a row.
func (r *Relation) forget(id RowID, bit Flags) {
	rec := r.record(id)
	flags := Flags(rec[r.arity])
	if flags&(bit<<knownShift) == 0 {
		return
	}
	flags &^= bit<<knownShift | bit<<seenShift
	rec[r.arity] = value.ID(flags)
	r.letGo(id, rec)
}

// letGo unlinks a lingering row that no pin sees any more, and drops it if its caller
// has.
func (r *Relation) letGo(id RowID, rec []value.ID) {
	flags := Flags(rec[r.arity])
	if flags&lingering == 0 || flags&seenMask != 0 || r.isGuarded(id) {
		return
	}
	r.unlink(id, rec)
	rec[r.arity] = value.ID(flags &^ (lingering | dropped))
	r.lingerers--
	if flags&dropped != 0 {
		r.drop(id, rec)
	}
}

// note writes down for the pins that do not know it whether a row that is about to
// change was visible.
func (r *Relation) note(id RowID, rec []value.ID, visible bool) {
	flags := Flags(rec[r.arity])
	fresh := r.pins &^ uint8(flags>>knownShift)
	flags |= Flags(fresh) << knownShift
	if visible {
		flags |= Flags(fresh) << seenShift
	}
	rec[r.arity] = value.ID(flags)
	for ; fresh != 0; fresh &= fresh - 1 {
		r.states[bits.TrailingZeros8(fresh)].changed.push(id)
	}
}

// showPinned notes that a row becomes visible, and makes it so if it lingers.
func (r *Relation) showPinned(id RowID, rec []value.ID) bool {
	r.note(id, rec, false)
	flags := Flags(rec[r.arity])
	if flags&lingering == 0 {
		return false
	}
	rec[r.arity] = value.ID(flags&^lingering | Visible)
	r.lingerers--
	r.visible++
	return true
}

// hidePinned notes that a row becomes invisible, and makes it linger if it must.
func (r *Relation) hidePinned(id RowID, rec []value.ID) bool {
	r.note(id, rec, true)
	flags := Flags(rec[r.arity])
	if flags&seenMask == 0 && !r.isGuarded(id) {
		return false
	}
	rec[r.arity] = value.ID(flags&^Visible | lingering)
	r.lingerers++
	r.visible--
	return true
}

// revive makes a row that only lingers a new one.
func (r *Relation) revive(id RowID) (made bool) {
	rec := r.record(id)
	made = Flags(rec[r.arity])&dropped != 0
	rec[r.arity] &^= value.ID(dropped)
	return made
}

// Guard keeps the row at a place linked until Unguard: a reader that pauses at a row
// that its pin does not see would lose its way.
func (r *Relation) Guard(at Ref) { r.guards = append(r.guards, at.Row()) }

// Unguard takes back one Guard.
func (r *Relation) Unguard(at Ref) {
	id := at.Row()
	i := slices.Index(r.guards, id)
	r.guards = slices.Delete(r.guards, i, i+1)
	r.letGo(id, r.record(id))
}

func (r *Relation) isGuarded(id RowID) bool {
	return len(r.guards) > 0 && slices.Contains(r.guards, id)
}

// VisibleAt reports whether the row with this id was visible at the pin.
func (r *Relation) VisibleAt(id RowID, p Pin) bool {
	flags := r.Flags(id)
	if p != Now && flags>>(knownShift+p-1)&1 != 0 {
		return flags>>(seenShift+p-1)&1 != 0
	}
	return flags&Visible != 0
}

// FindAt returns the row with these cells if it was visible at the pin.
func (r *Relation) FindAt(row []value.ID, p Pin) (RowID, bool) {
	id, ok := r.find(hashCells(row), row)
	return id, ok && r.VisibleAt(id, p)
}

// MadeAt returns an upper bound, exclusive, on the ids of the rows visible at the
// pin.
func (r *Relation) MadeAt(p Pin) int {
	if p == Now {
		return int(r.made)
	}
	return int(min(r.made, r.states[p-1].made))
}

// LenAt returns the number of rows visible at the pin.
func (r *Relation) LenAt(p Pin) int {
	if p == Now {
		return r.visible
	}
	return r.states[p-1].visible
}

// NextAt returns the first row from on, and before end, that was visible at the pin
// and holds cell at column (any cell if column is negative). If there is none it
// returns end and false.
func (r *Relation) NextAt(p Pin, from, end RowID, column int, cell value.ID) (RowID, bool) {
	for id := from; id < end; id++ {
		rec := r.record(id)
		if column >= 0 && rec[column] != cell {
			continue
		}
		if flags := Flags(rec[r.arity]); flags&(Visible|seenMask) != 0 && r.VisibleAt(id, p) {
			return id, true
		}
	}
	return end, false
}

// rowList is a stack of row ids in pieces, which are given back as it shrinks.
type rowList struct {
	pieces [][]RowID
}

const pieceRows = 4096

func (l *rowList) push(id RowID) {
	last := len(l.pieces) - 1
	if last < 0 || len(l.pieces[last]) == pieceRows {
		size := pieceRows
		if last < 0 {
			size = firstRows // most pins end soon
		}
		l.pieces = append(l.pieces, make([]RowID, 0, size))
		last++
	}
	l.pieces[last] = append(l.pieces[last], id)
}

func (l *rowList) pop() (RowID, bool) {
	last := len(l.pieces) - 1
	if last < 0 {
		return 0, false
	}
	piece := l.pieces[last]
	id := piece[len(piece)-1]
	if l.pieces[last] = piece[:len(piece)-1]; len(piece) == 1 {
		l.pieces[last] = nil
		l.pieces = l.pieces[:last]
	}
	return id, true
}

func (p *pinned) bytes() int {
	n := 0
	for i := range p.states {
		for _, piece := range p.states[i].changed.pieces {
			n += 4 * cap(piece)
		}
	}
	return n
}
