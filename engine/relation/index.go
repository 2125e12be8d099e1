package relation

import (
	"math/bits"

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
// key form a doubly linked list that runs through link words beside the rows, so
// that insertion and deletion cost the same for a key of one row and of a million.
type Index struct {
	relation *Relation
	set      Columns
	columns  []int // ascending
	heads    table // the first row of each list, under its key's hash
	links    [][]uint32
}

// Index returns the relation's index on these columns (at least one, and not all
// of them), and makes it from the visible rows if there is none.
func (r *Relation) Index(set Columns) *Index {
	for _, ix := range r.indexes {
		if ix.set == set {
			return ix
		}
	}
	ix := r.Detached(set)
	r.indexes = append(r.indexes, ix)
	return ix
}

// Detached makes an index from the visible rows that later changes of the
// relation do not maintain: it is valid until the next of them.
func (r *Relation) Detached(set Columns) *Index {
	ix := &Index{relation: r, set: set, heads: newTable()}
	for c := range r.arity {
		if set.Has(c) {
			ix.columns = append(ix.columns, c)
		}
	}
	for id, ok := r.NextVisible(0); ok; id, ok = r.NextVisible(id + 1) {
		ix.link(id, r.Row(id))
	}
	return ix
}

// BestIndex returns the index that uses most of the given columns and no other,
// or nil.
func (r *Relation) BestIndex(bound Columns) *Index {
	var best *Index
	for _, ix := range r.indexes {
		if ix.set&^bound == 0 && (best == nil || ix.set.Len() > best.set.Len()) {
			best = ix
		}
	}
	return best
}

// KeepIndexes forgets the indexes that keep refuses.
func (r *Relation) KeepIndexes(keep func(*Index) bool) {
	kept := r.indexes[:0]
	for _, ix := range r.indexes {
		if keep(ix) {
			kept = append(kept, ix)
		}
	}
	clear(r.indexes[len(kept):])
	r.indexes = kept
}

// Columns returns the columns of the index's key.
func (ix *Index) Columns() Columns { return ix.set }

// First returns the place of the first row whose cells at the index's columns, in
// ascending order, are key. The list's order is that of insertion, newest first.
func (ix *Index) First(key []value.ID) Ref {
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

// Next returns the place after at, which must not be the end.
func (ix *Index) Next(at Ref) Ref {
	id := at.Row()
	return Ref(ix.links[id>>chunkBits][2*(id&(chunkRows-1))])
}

// pair returns the link words of a row: the next and the previous reference.
func (ix *Index) pair(ref uint32) []uint32 {
	id := ref - 1
	at := 2 * (id & (chunkRows - 1))
	return ix.links[id>>chunkBits][at : at+2 : at+2]
}

// makeRoom makes the link words of a row. Like rows, only those of the first
// chunk are ever recopied.
func (ix *Index) makeRoom(id RowID) {
	at := int(id >> chunkBits)
	for len(ix.links) < at {
		ix.links = append(ix.links, nil)
	}
	if at == len(ix.links) {
		ix.links = append(ix.links, nil)
	}
	have := len(ix.links[at])
	if need := 2 * (int(id&(chunkRows-1)) + 1); need > have {
		size := 2 * chunkRows
		if at == 0 {
			size = max(need, 2*have, 2*firstRows)
			size = min(size, 2*chunkRows)
		}
		grown := make([]uint32, size)
		copy(grown, ix.links[at])
		ix.links[at] = grown
	}
}

func (ix *Index) link(id RowID, row []value.ID) {
	ix.makeRoom(id)
	ref := uint32(id) + 1
	pair := ix.pair(ref)
	hash := hashColumns(row, ix.columns)
	if s, i, ok := ix.findHead(hash, row); ok {
		head := uint32(s.slots[i])
		pair[0], pair[1] = head, 0
		ix.pair(head)[1] = ref
		s.slots[i] = slotHash(hash) | uint64(ref)
		return
	}
	pair[0], pair[1] = 0, 0
	ix.heads.insert(hash, ref)
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
	pair := ix.pair(ref)
	next, previous := pair[0], pair[1]
	if next != 0 {
		ix.pair(next)[1] = previous
	}
	if previous != 0 {
		ix.pair(previous)[0] = next
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

func (ix *Index) bytes() int {
	n := ix.heads.bytes()
	for _, c := range ix.links {
		n += 4 * len(c)
	}
	return n
}
