package relation

import (
	"math/bits"
	"slices"

	"github.com/heddle-live/heddle/engine/value"
)

// Columns is a set of columns, one bit each.
type Columns uint64

// Has reports whether column c is in the set.
func (s Columns) Has(c int) bool { return s>>c&1 != 0 }

// Len returns the number of columns in the set.
func (s Columns) Len() int { return bits.OnesCount64(uint64(s)) }

// Ref is a place in a posting list: a row id + 1, or 0 at the list's end.
type Ref uint32

// Row returns the row at a place other than the end.
func (f Ref) Row() RowID { return RowID(f - 1) }

// Index finds the visible rows that agree with a key in some columns. Rows of one
// key form a doubly linked list that runs through link words in their records, so
// that insertion and deletion cost the same for a key of one row and of a million.
type Index struct {
	relation *Relation
	set      Columns
	columns  []int // ascending
	heads    table // the first row of each list, under its key's hash
	// next holds the reference of the row after each row in its list, close together,
	// since whoever reads a list waits for one after the other. That of the row
	// before stands at word back of a row's record, which an insertion behind it and
	// a deletion load anyway. A detached index has none: back is 0.
	next store
	back int
	read value.ID // is there so that Gather has to read cells
	// forgotten says that only pinned readers may still use the index.
	forgotten bool
}

// Index returns the relation's index on these columns (at least one, and not all
// of them), and makes it from the visible rows if there is none. That takes time
// in proportion to the rows: their records get wider, too.
func (r *Relation) Index(set Columns) *Index {
	for _, ix := range r.indexes {
		if ix.set == set {
			ix.forgotten = false
			return ix
		}
	}
	ix := r.newIndex(set)
	ix.back = r.stride
	r.indexes = append(r.indexes, ix)
	r.layOut()
	for id := range RowID(r.made) {
		if r.Flags(id)&(Visible|lingering) != 0 {
			ix.link(id, r.Row(id))
		}
	}
	return ix
}

// Detached makes an index from the rows visible at a pin that later changes of the
// relation do not maintain: it is valid until the pin ends, or that of Now until the
// next change. It calls goesOn, if not nil, now and then, during which a pinned
// relation may change, and stops when that returns false.
func (r *Relation) Detached(set Columns, p Pin, goesOn func() bool) *Index {
	ix := r.newIndex(set)
	for id := RowID(0); int(id) < r.MadeAt(p); id++ {
		if r.VisibleAt(id, p) {
			ix.link(id, r.Row(id))
		}
		if id%detachedRows == 0 && goesOn != nil && !goesOn() {
			break
		}
	}
	return ix
}

// detachedRows are looked at between two questions whether to go on.
const detachedRows = 256

func (r *Relation) newIndex(set Columns) *Index {
	ix := &Index{relation: r, set: set, heads: newTable(), next: store{stride: 1}}
	for c := range r.arity {
		if set.Has(c) {
			ix.columns = append(ix.columns, c)
		}
	}
	for _, c := range r.chunks {
		ix.next.addChunk(len(c) / r.stride)
	}
	return ix
}

// layOut gives the backward references of the present indexes their places, one
// after the other, and copies every row to a record of that form, chunk by chunk.
func (r *Relation) layOut() {
	from, stride := make([]int, len(r.indexes)), r.fixed
	for i, ix := range r.indexes {
		from[i], ix.back = ix.back, stride
		stride++
	}
	for i, old := range r.chunks {
		rows := len(old) / r.stride
		chunk := make([]value.ID, rows*stride)
		for row := range rows {
			dst, src := chunk[row*stride:(row+1)*stride], old[row*r.stride:(row+1)*r.stride]
			copy(dst[:r.fixed], src)
			for k, at := range from {
				if at < r.stride { // else it is of a new index
					dst[r.fixed+k] = src[at]
				}
			}
		}
		r.chunks[i] = chunk
	}
	r.stride, r.holes = stride, false
}

// BestIndex returns the index that uses most of the given columns and no other,
// or nil.
func (r *Relation) BestIndex(bound Columns) *Index {
	var best *Index
	for _, ix := range r.indexes {
		if ix.set&^bound == 0 && !ix.forgotten &&
			(best == nil || ix.set.Len() > best.set.Len()) {
			best = ix
		}
	}
	return best
}

// KeepIndexes forgets the indexes that keep refuses. They stay for pinned readers
// until there is no pin.
func (r *Relation) KeepIndexes(keep func(*Index) bool) {
	for _, ix := range r.indexes {
		ix.forgotten = !keep(ix)
	}
	if r.deferring == 0 {
		r.dropForgotten()
		if r.holes {
			r.layOut()
		}
	}
}

// dropForgotten ends the forgotten indexes; their words in the rows remain.
func (r *Relation) dropForgotten() {
	had := len(r.indexes)
	r.indexes = slices.DeleteFunc(r.indexes, func(ix *Index) bool { return ix.forgotten })
	r.holes = r.holes || len(r.indexes) < had
}

// Columns returns the columns of the index's key.
func (ix *Index) Columns() Columns { return ix.set }

// Keys returns the number of keys that have rows.
func (ix *Index) Keys() int {
	keys := 0
	for i := range ix.heads.segments {
		keys += ix.heads.segments[i].used
	}
	return keys
}

// First returns the place of the first row whose cells at the index's columns, in
// ascending order, are key. The list's order is that of insertion, newest first.
func (ix *Index) First(key []value.ID) Ref {
	at := ix.FirstLinked(key)
	if at != 0 && ix.relation.lingerers > 0 {
		return ix.skip(at)
	}
	return at
}

// Next returns the place after at, which must not be the end.
func (ix *Index) Next(at Ref) Ref {
	at = ix.NextLinked(at)
	if at != 0 && ix.relation.lingerers > 0 {
		return ix.skip(at)
	}
	return at
}

// Gather puts the rows from a place on, which must not be the end, into rows, as many
// as fit. It returns how many they are and the place after them. Their cells are then
// in the processor's cache.
func (ix *Index) Gather(at Ref, rows []RowID) (int, Ref) {
	n := 0
	for ; at != 0 && n < len(rows); n++ {
		rows[n] = at.Row()
		ix.read += ix.relation.Row(rows[n])[0]
		at = ix.Next(at)
	}
	return n, at
}

// skip returns at, or the first place after it, whose row is visible.
func (ix *Index) skip(at Ref) Ref {
	if ix.back == 0 {
		return at // the rows of a detached index are visible at its pin
	}
	for at != 0 && !ix.relation.IsVisible(at.Row()) {
		at = ix.NextLinked(at)
	}
	return at
}

// FirstLinked is First for a reader of a pin: the list holds all rows visible at it,
// and others.
func (ix *Index) FirstLinked(key []value.ID) Ref {
	hash := hashCells(key)
	s, i := ix.heads.segmentOf(hash)
probe:
	for {
		slot := s.slots[i]
		if slot == 0 {
			return 0
		}
		if holds(slot, hash) {
			row := ix.relation.Row(RowID(uint32(slot) - 1))
			for k, c := range ix.columns {
				if row[c] != key[k] {
					i = (i + 1) & s.mask()
					continue probe
				}
			}
			return Ref(uint32(slot))
		}
		i = (i + 1) & s.mask()
	}
}

// NextLinked is Next for a reader of a pin.
func (ix *Index) NextLinked(at Ref) Ref { return Ref(*ix.after(uint32(at))) }

// after returns where the reference of the row after ref stands.
func (ix *Index) after(ref uint32) *value.ID {
	id := ref - 1
	return &ix.next.chunks[id>>chunkBits][id&(chunkRows-1)]
}

// before returns where the reference of the row before ref stands.
func (ix *Index) before(ref uint32) *value.ID {
	id := ref - 1
	return &ix.relation.chunks[id>>chunkBits][int(id&(chunkRows-1))*ix.relation.stride+ix.back]
}

func (ix *Index) link(id RowID, row []value.ID) {
	ref := uint32(id) + 1
	hash := hashColumns(row, ix.columns)
	s, i, ok := ix.findHead(hash, row)
	if !ok {
		*ix.after(ref) = 0
		if ix.back != 0 {
			*ix.before(ref) = 0
		}
		ix.heads.insert(hash, ref)
		return
	}
	head := uint32(s.slots[i])
	*ix.after(ref) = value.ID(head)
	if ix.back != 0 {
		*ix.before(ref) = 0
		*ix.before(head) = value.ID(ref)
	}
	s.slots[i] = slotHash(hash) | uint64(ref)
}

// findHead returns the slot of the list that row belongs to.
func (ix *Index) findHead(hash uint32, row []value.ID) (*segment, uint64, bool) {
	s, i := ix.heads.segmentOf(hash)
probe:
	for {
		slot := s.slots[i]
		if slot == 0 {
			return s, i, false
		}
		if holds(slot, hash) {
			head := ix.relation.Row(RowID(uint32(slot) - 1))
			for _, c := range ix.columns {
				if row[c] != head[c] {
					i = (i + 1) & s.mask()
					continue probe
				}
			}
			return s, i, true
		}
		i = (i + 1) & s.mask()
	}
}

func (ix *Index) unlink(id RowID, row []value.ID) {
	ref := uint32(id) + 1
	next, previous := uint32(*ix.after(ref)), uint32(*ix.before(ref))
	if next != 0 {
		*ix.before(next) = value.ID(previous)
	}
	if previous != 0 {
		*ix.after(previous) = value.ID(next)
		return
	}
	hash := hashColumns(row, ix.columns)
	s, i := ix.heads.find(hash, ref)
	if next != 0 {
		s.slots[i] = slotHash(hash) | uint64(next)
		return
	}
	s.removeAt(i)
}

func (ix *Index) bytes() int { return ix.heads.bytes() + ix.next.bytes() }
