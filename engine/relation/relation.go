// Package relation stores rows of interned values: arenas that are recopied only
// for a new index, segmented hash sets over them, and hash indexes with posting
// lists that run through the rows. It knows nothing of rules. It does no I/O and
// takes no lock: one goroutine, the graph's loop, does everything to a relation;
// package dataflow is its only user but for the engine's face.
//
// A row has an identity (RowID) from Add until Drop, and is visible in between
// from Show until Hide. Only visible rows are in indexes and met by scans, so
// that an evaluator may hold rows whose presence is not decided yet.
//
// A state can be pinned, and then be read piece by piece while the relation goes on
// changing: see Pin.
package relation

import "github.com/heddle-live/heddle/engine/value"

// RowID names a row of one relation from Add until Drop; then it is used again.
type RowID uint32

// RowsMax is the number of rows that one relation can hold.
const RowsMax = 1<<32 - 2

// Flags are one bit each. Visible and the bits outside CallerFlags belong to this
// package; the others are its caller's, and are zero in a new row.
type Flags uint32

const (
	// Visible marks the rows that indexes and scans meet. Only Show and Hide change it.
	Visible Flags = 1
	// CallerFlags are those that the caller may set and clear.
	CallerFlags Flags = 1<<14 - 2
)

const (
	chunkBits = 16
	chunkRows = 1 << chunkBits
	firstRows = 8 // the first chunk begins this small, and doubles until it is whole
)

// Relation is a set of rows of one arity. The zero value is not usable; see New.
type Relation struct {
	arity int
	fixed int // words of a record before its links: cells, flags, two for each counter
	// A record is the fixed words of a row and then, for each index, the reference
	// of the row before it in its list.
	store
	made    uint32 // rows ever made: those below are live or in the free list
	free    uint32 // first row of the free list + 1; the link is in a row's first cell
	rows    int    // live rows
	visible int
	warmed  value.ID // meaningless
	set     table
	indexes []*Index
	holes   bool // records have words of indexes that are no more
	symbols Symbols
	pinned
}

// Symbols counts the uses of ids.
type Symbols interface {
	// RetainRow counts one use more of each of the ids.
	RetainRow(ids []value.ID)
	// ReleaseRow ends that many uses.
	ReleaseRow(ids []value.ID)
}

// New returns an empty relation of the given arity; only the first 64 columns can
// be indexed. Every row has that many 64-bit counters for its caller's use.
func New(arity, counters int) *Relation {
	fixed := arity + 1 + 2*counters
	return &Relation{
		arity: arity, fixed: fixed, store: store{stride: fixed}, set: newTable(),
	}
}

// Retain makes every row retain its cells from Add until it is dropped and no pin
// needs it any more. The relation must be empty.
func (r *Relation) Retain(s Symbols) {
	if r.rows > 0 {
		panic("relation: rows that are there already retain nothing")
	}
	r.symbols = s
}

// Arity returns the number of cells of each row.
func (r *Relation) Arity() int { return r.arity }

// Len returns the number of visible rows.
func (r *Relation) Len() int { return r.visible }

// Made returns an upper bound, exclusive, on the row ids in use.
func (r *Relation) Made() int { return int(r.made) }

// Room returns how many rows can be added before the relation is full.
func (r *Relation) Room() int { return RowsMax - r.rows }

// Row returns the cells of a row. They must not be changed, and stay readable
// until the row is dropped.
func (r *Relation) Row(id RowID) []value.ID {
	at := int(id&(chunkRows-1)) * r.stride
	return r.chunks[id>>chunkBits][at : at+r.arity : at+r.arity]
}

// Flags returns the flags of a row.
func (r *Relation) Flags(id RowID) Flags { return Flags(r.record(id)[r.arity]) }

// IsVisible reports whether the row is visible.
func (r *Relation) IsVisible(id RowID) bool { return r.Flags(id)&Visible != 0 }

// SetFlags sets the given flags of a row, which must not include Visible.
func (r *Relation) SetFlags(id RowID, f Flags) { r.record(id)[r.arity] |= value.ID(f) }

// ClearFlags clears the given flags of a row, which must not include Visible.
func (r *Relation) ClearFlags(id RowID, f Flags) { r.record(id)[r.arity] &^= value.ID(f) }

// Counter returns counter c of a row, which must be below the number given to New.
// The counters of a new row are 0.
func (r *Relation) Counter(id RowID, c int) uint64 {
	rec := r.record(id)[r.arity+1+2*c:]
	return uint64(rec[0]) | uint64(rec[1])<<32
}

// SetCounter sets counter c of a row.
func (r *Relation) SetCounter(id RowID, c int, n uint64) {
	rec := r.record(id)[r.arity+1+2*c:]
	rec[0], rec[1] = value.ID(n), value.ID(n>>32)
}

// Find returns the row with these cells, visible or not, and false if there is
// none. len(row) must be the arity.
func (r *Relation) Find(row []value.ID) (RowID, bool) {
	id, ok := r.find(hashCells(row), row)
	if ok && r.lingerers > 0 && r.Flags(id)&dropped != 0 {
		return 0, false
	}
	return id, ok
}

func (r *Relation) find(hash uint32, row []value.ID) (RowID, bool) {
	s, i := r.set.segmentOf(hash)
	for {
		slot := s.slots[i]
		if slot == 0 {
			return 0, false
		}
		if holds(slot, hash) {
			id := RowID(uint32(slot) - 1)
			if equalCells(r.Row(id), row) {
				return id, true
			}
		}
		i = (i + 1) & s.mask()
	}
}

// Warm brings what Find of a row reads into the cache. It waits for nothing, so that
// calls for several rows overlap.
func (r *Relation) Warm(row []value.ID) {
	hash := hashCells(row)
	s, i := r.set.segmentOf(hash)
	if slot := s.slots[i]; holds(slot, hash) {
		r.warmed += r.record(RowID(uint32(slot) - 1))[0]
	}
}

func equalCells(a, b []value.ID) bool {
	for i, c := range a {
		if c != b[i] {
			return false
		}
	}
	return true
}

// Add returns the row with these cells, and makes it, invisible, if there is
// none; made tells which. The cells are copied. It panics if there is no Room.
func (r *Relation) Add(row []value.ID) (id RowID, made bool) {
	hash := hashCells(row)
	if id, ok := r.find(hash, row); ok {
		return id, r.lingerers > 0 && r.revive(id)
	}
	id = r.newRow()
	copy(r.record(id), row) // a free record is clear, but for what pins know of its id
	r.set.insert(hash, uint32(id)+1)
	r.rows++
	if r.symbols != nil {
		r.symbols.RetainRow(row)
	}
	return id, true
}

// newRow takes a row from the free list or from the last chunk.
func (r *Relation) newRow() RowID {
	if r.free != 0 {
		id := RowID(r.free - 1)
		r.free = 0
		if r.arity > 0 {
			r.free = uint32(r.record(id)[0])
		}
		return id
	}
	if r.made >= RowsMax {
		panic("relation: more rows than a relation can hold")
	}
	id := RowID(r.made)
	at := int(id >> chunkBits)
	switch {
	case at == len(r.chunks):
		rows := chunkRows
		if at == 0 {
			rows = firstRows
		}
		r.addChunk(rows)
		for _, ix := range r.indexes {
			ix.next.addChunk(rows)
		}
	case at == 0 && int(id)*r.stride == len(r.chunks[0]):
		r.double()
		for _, ix := range r.indexes {
			ix.next.double()
		}
	}
	r.made++
	return id
}

// Drop forgets a row, which must be invisible. Its id will be used again.
func (r *Relation) Drop(id RowID) {
	rec := r.record(id)
	if flags := Flags(rec[r.arity]); flags&(Visible|lingering) != 0 {
		if flags&Visible != 0 {
			panic("relation: drop of a visible row")
		}
		rec[r.arity] = value.ID(flags&^CallerFlags | dropped)
		clear(rec[r.arity+1 : r.fixed])
		return
	}
	r.drop(id, rec)
}

// drop forgets a row that no list links.
func (r *Relation) drop(id RowID, rec []value.ID) {
	if r.symbols != nil {
		r.symbols.ReleaseRow(rec[:r.arity])
	}
	s, i := r.set.find(hashCells(rec[:r.arity]), uint32(id)+1)
	s.removeAt(i)
	known := Flags(rec[r.arity]) & knownMask
	clear(rec[:r.fixed])
	rec[r.arity] = value.ID(known)
	if r.arity > 0 {
		rec[0] = value.ID(r.free)
	}
	r.free = uint32(id) + 1
	if r.rows--; r.rows == 0 && r.made > chunkRows {
		r.reset()
	}
}

// reset gives back the memory of a large relation that has become empty.
func (r *Relation) reset() {
	r.chunks, r.made, r.free, r.set = nil, 0, 0, newTable()
	for _, ix := range r.indexes {
		ix.heads, ix.next.chunks = newTable(), nil
	}
}

// Show makes an invisible row visible.
func (r *Relation) Show(id RowID) {
	rec := r.record(id)
	if Flags(rec[r.arity])&Visible != 0 {
		panic("relation: show of a visible row")
	}
	if r.deferring != 0 && r.showPinned(id, rec) {
		return
	}
	rec[r.arity] |= value.ID(Visible)
	r.visible++
	for _, ix := range r.indexes {
		ix.link(id, rec[:r.arity])
	}
}

// Hide makes a visible row invisible.
func (r *Relation) Hide(id RowID) {
	rec := r.record(id)
	if Flags(rec[r.arity])&Visible == 0 {
		panic("relation: hide of an invisible row")
	}
	if r.deferring != 0 && r.hidePinned(id, rec) {
		return
	}
	rec[r.arity] &^= value.ID(Visible)
	r.visible--
	r.unlink(id, rec)
}

func (r *Relation) unlink(id RowID, rec []value.ID) {
	for _, ix := range r.indexes {
		ix.unlink(id, rec[:r.arity])
	}
}

// NextVisible returns the first visible row whose id is at least from, and false
// if there is none. A scan is NextVisible(0), NextVisible(id+1), and so on; its
// order is that of the ids.
func (r *Relation) NextVisible(from RowID) (RowID, bool) {
	for id := uint32(from); id < r.made; {
		first := int(id&(chunkRows-1)) * r.stride
		last := min(int(r.made-id), chunkRows-int(id&(chunkRows-1)))*r.stride + first
		rows := r.chunks[id>>chunkBits][first:last]
		for at := r.arity; at < len(rows); at += r.stride {
			if Flags(rows[at])&Visible != 0 {
				return RowID(id + uint32(at/r.stride)), true
			}
		}
		id += uint32(len(rows) / r.stride)
	}
	return 0, false
}

// NextMatch is NextVisible among the rows whose cell at column is cell.
func (r *Relation) NextMatch(from RowID, column int, cell value.ID) (RowID, bool) {
	for id := uint32(from); id < r.made; {
		first := int(id&(chunkRows-1)) * r.stride
		last := min(int(r.made-id), chunkRows-int(id&(chunkRows-1)))*r.stride + first
		rows := r.chunks[id>>chunkBits][first:last]
		for at := 0; at < len(rows); at += r.stride {
			if rows[at+column] == cell && Flags(rows[at+r.arity])&Visible != 0 {
				return RowID(id + uint32(at/r.stride)), true
			}
		}
		id += uint32(len(rows) / r.stride)
	}
	return 0, false
}

// Bytes returns the memory that the relation and its indexes hold, without what
// the allocator adds.
func (r *Relation) Bytes() int {
	n := r.set.bytes() + r.store.bytes() + r.pinned.bytes()
	for _, ix := range r.indexes {
		n += ix.bytes()
	}
	return n
}
