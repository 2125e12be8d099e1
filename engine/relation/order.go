package relation

import "github.com/heddle-live/heddle/engine/value"

// Comparer orders what ids stand for.
type Comparer interface {
	Compare(a, b value.ID) int
}

// Sort is one column of an order.
type Sort struct {
	Column     int
	Descending bool
}

// Root is one sorted sequence of an Order; 0 is the empty one.
type Root uint32

// Order keeps rows of one relation, visible or not, in any number of sorted
// sequences: one for each group of the caller's. Insertion, deletion and access by
// rank take time logarithmic in the sequence. A row may stand in one sequence
// only, is put in and taken out by the caller, and must not be dropped meanwhile.
// The rows of a sequence must differ in the columns of the order.
//
// Sequences are B+ trees that count their rows. An entry has the row's cell at the
// first column beside its id, so that most comparisons touch no row.
type Order struct {
	relation *Relation
	by       []Sort
	comparer Comparer
	blocks   blocks
}

// A node is a block. Its first word holds the number of its entries or children,
// its class, and whether it is an inner one. A leaf's entries are pairs of row and
// cell from word orderHead on; all leaves but a root are of the widest class. The
// words of an inner node are divided into four arrays: children, their rows'
// numbers, and the row and cell of a bound. The bound of a child, but of the first
// which has none, is its subtree's first entry.
const (
	orderHead   = 2
	orderFan    = 32 // children of an inner node
	orderLeaf   = 2 * orderFan
	orderInner  = 1 << 16
	orderClass  = 8 // shift
	orderWidest = 5 // class

	orderSizes = orderHead + orderFan
	orderRows  = orderHead + 2*orderFan
	orderCells = orderHead + 3*orderFan
)

// inlineMax is where ids stop being the ints that they stand for; see value.ID.
const inlineMax = 1 << 31

type orderEntry struct {
	row  RowID
	cell value.ID
}

// NewOrder returns an order by the given columns, the first of which decides first.
// Without columns, no sequence can have more than one row.
func NewOrder(r *Relation, by []Sort, comparer Comparer) *Order {
	sizes := make([]int, orderWidest+1)
	for class := range sizes {
		sizes[class] = orderHead + 2*leafRoom(class)
	}
	return &Order{relation: r, by: by, comparer: comparer, blocks: newBlocks(sizes)}
}

func leafRoom(class int) int { return orderLeaf >> (orderWidest - class) }

func nodeCount(n []uint32) int   { return int(n[0] & (1<<orderClass - 1)) }
func nodeClass(n []uint32) int   { return int(n[0] >> orderClass & 0xFF) }
func isInner(n []uint32) bool    { return n[0]&orderInner != 0 }
func setCount(n []uint32, c int) { n[0] = n[0]&^uint32(1<<orderClass-1) | uint32(c) }

func leafEntry(n []uint32, i int) orderEntry {
	at := orderHead + 2*i
	return orderEntry{RowID(n[at]), value.ID(n[at+1])}
}

func setLeafEntry(n []uint32, i int, e orderEntry) {
	at := orderHead + 2*i
	n[at], n[at+1] = uint32(e.row), uint32(e.cell)
}

func bound(n []uint32, i int) orderEntry {
	return orderEntry{RowID(n[orderRows+i]), value.ID(n[orderCells+i])}
}

func setBound(n []uint32, i int, e orderEntry) {
	n[orderRows+i], n[orderCells+i] = uint32(e.row), uint32(e.cell)
}

// isBefore reports whether a stands before b.
func (o *Order) isBefore(a, b orderEntry) bool {
	if a.row == b.row {
		return false
	}
	if a.cell != b.cell {
		if a.cell < inlineMax && b.cell < inlineMax {
			return a.cell < b.cell != o.by[0].Descending
		}
		return o.comparer.Compare(a.cell, b.cell) < 0 != o.by[0].Descending
	}
	x, y := o.relation.Row(a.row), o.relation.Row(b.row)
	for _, s := range o.by {
		if p, q := x[s.Column], y[s.Column]; p != q {
			return o.comparer.Compare(p, q) < 0 != s.Descending
		}
	}
	panic("relation: two rows of an order do not differ")
}

func (o *Order) entryOf(row RowID) orderEntry {
	if len(o.by) == 0 {
		return orderEntry{row: row}
	}
	return orderEntry{row, o.relation.Row(row)[o.by[0].Column]}
}

// Len returns the number of rows in a sequence.
func (o *Order) Len(root Root) int {
	if root == 0 {
		return 0
	}
	return nodeSize(o.blocks.at(uint32(root)))
}

func nodeSize(n []uint32) int {
	if !isInner(n) {
		return nodeCount(n)
	}
	size := 0
	for _, s := range n[orderSizes : orderSizes+nodeCount(n)] {
		size += int(s)
	}
	return size
}

// At returns the row at a rank, which counts from 0 and must be below Len.
func (o *Order) At(root Root, rank int) RowID {
	n := o.blocks.at(uint32(root))
	for isInner(n) {
		i := 0
		for rank >= int(n[orderSizes+i]) {
			rank -= int(n[orderSizes+i])
			i++
		}
		n = o.blocks.at(n[orderHead+i])
	}
	return leafEntry(n, rank).row
}

// Last returns the last row of a sequence that is not empty.
func (o *Order) Last(root Root) RowID {
	n := o.blocks.at(uint32(root))
	for isInner(n) {
		n = o.blocks.at(n[orderHead+nodeCount(n)-1])
	}
	return leafEntry(n, nodeCount(n)-1).row
}

// childOf returns the number of the child of an inner node to which an entry
// belongs, and how many rows stand in those before it.
func (o *Order) childOf(n []uint32, e orderEntry) (child, before int) {
	low, high := 0, nodeCount(n)-1
	for low < high {
		if middle := (low + high + 1) / 2; o.isBefore(e, bound(n, middle)) {
			high = middle - 1
		} else {
			low = middle
		}
	}
	for _, s := range n[orderSizes : orderSizes+low] {
		before += int(s)
	}
	return low, before
}

// placeIn returns the number of entries of a leaf before an entry.
func (o *Order) placeIn(n []uint32, e orderEntry) int {
	low, high := 0, nodeCount(n)
	for low < high {
		if middle := (low + high) / 2; o.isBefore(leafEntry(n, middle), e) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// newNode returns an empty node.
func (o *Order) newNode(class int, kind uint32) uint32 {
	ref := o.blocks.alloc(class)
	o.blocks.at(ref)[0] = kind | uint32(class)<<orderClass
	return ref
}

func (o *Order) releaseNode(ref uint32) {
	o.blocks.release(ref, nodeClass(o.blocks.at(ref)))
}

// resize moves a leaf that is a root to a block of another class.
func (o *Order) resize(leaf uint32, class int) uint32 {
	to := o.newNode(class, 0)
	n, old := o.blocks.at(to), o.blocks.at(leaf)
	count := nodeCount(old)
	copy(n[orderHead:], old[orderHead:orderHead+2*count])
	setCount(n, count)
	o.releaseNode(leaf)
	return to
}

// split is a node that was split off its left sibling: 0 for none, its first entry,
// and its rows.
type split struct {
	node  uint32
	first orderEntry
	size  int
}

// Insert puts a row into a sequence, and returns the sequence as it is then and
// the rank that the row got.
func (o *Order) Insert(root Root, row RowID) (Root, int) {
	ref := uint32(root)
	if root == 0 {
		ref = o.newNode(0, 0)
	} else if n := o.blocks.at(ref); !isInner(n) {
		if class := nodeClass(n); class < orderWidest && nodeCount(n) == leafRoom(class) {
			ref = o.resize(ref, class+1)
		}
	}
	rank, s := o.insert(ref, o.entryOf(row))
	if s.node != 0 {
		top := o.newNode(orderWidest, orderInner)
		n := o.blocks.at(top)
		setCount(n, 2)
		n[orderHead], n[orderHead+1] = ref, s.node
		n[orderSizes] = uint32(nodeSize(o.blocks.at(ref)))
		n[orderSizes+1] = uint32(s.size)
		setBound(n, 1, s.first)
		ref = top
	}
	return Root(ref), rank
}

func (o *Order) insert(ref uint32, e orderEntry) (rank int, s split) {
	n := o.blocks.at(ref)
	if !isInner(n) {
		at := o.placeIn(n, e)
		return at, o.insertEntry(ref, at, e)
	}
	child, before := o.childOf(n, e)
	rank, s = o.insert(n[orderHead+child], e)
	n = o.blocks.at(ref)
	n[orderSizes+child]++
	if s.node != 0 {
		n[orderSizes+child] -= uint32(s.size)
		s = o.insertChild(ref, child+1, s)
	}
	return before + rank, s
}

// insertEntry puts an entry into a leaf, and splits it if it is full. Rows that
// come in their order fill their leaves.
func (o *Order) insertEntry(ref uint32, at int, e orderEntry) split {
	var s split
	n := o.blocks.at(ref)
	if nodeCount(n) == orderLeaf {
		s.node = o.newNode(orderWidest, 0)
		n = o.blocks.at(ref)
		right := o.blocks.at(s.node)
		keep := orderLeaf / 2
		if at == orderLeaf {
			keep = orderLeaf
		}
		copy(right[orderHead:], n[orderHead+2*keep:orderHead+2*orderLeaf])
		setCount(n, keep)
		setCount(right, orderLeaf-keep)
		if at > keep || keep == orderLeaf {
			n, at = right, at-keep
		}
	}
	count := nodeCount(n)
	entries := n[orderHead : orderHead+2*(count+1)]
	copy(entries[2*at+2:], entries[2*at:])
	setLeafEntry(n, at, e)
	setCount(n, count+1)
	if s.node != 0 {
		right := o.blocks.at(s.node)
		s.first, s.size = leafEntry(right, 0), nodeCount(right)
	}
	return s
}

// insertChild puts a node into an inner one, and splits that if it is full.
func (o *Order) insertChild(ref uint32, at int, child split) split {
	var s split
	n := o.blocks.at(ref)
	if nodeCount(n) == orderFan {
		s.node = o.newNode(orderWidest, orderInner)
		n = o.blocks.at(ref)
		right := o.blocks.at(s.node)
		keep := orderFan / 2
		if at == orderFan {
			keep = orderFan - 1
		}
		moveChildren(right, 0, n, keep, orderFan-keep)
		setCount(n, keep)
		setCount(right, orderFan-keep)
		s.first = bound(n, keep)
		if at > keep {
			n, at = right, at-keep
		}
	}
	count := nodeCount(n)
	moveChildren(n, at+1, n, at, count-at)
	n[orderHead+at], n[orderSizes+at] = child.node, uint32(child.size)
	setBound(n, at, child.first)
	setCount(n, count+1)
	if s.node != 0 {
		s.size = nodeSize(o.blocks.at(s.node))
	}
	return s
}

// moveChildren copies children with what is known of them.
func moveChildren(to []uint32, toAt int, from []uint32, at, count int) {
	for array := orderHead; array <= orderCells; array += orderFan {
		copy(to[array+toAt:array+toAt+count], from[array+at:array+at+count])
	}
}
