package relation

// Nodes of at most these many entries or children look for a sibling to merge with,
// and merge if together they keep within the others.
const (
	leafMergeMax   = orderLeaf / 4
	leafMerged     = orderLeaf * 3 / 4
	innerMergeMax  = orderFan / 4
	innerMerged    = orderFan * 3 / 4
	leafShrinkPart = 4 // a root leaf moves to half the room when it is this part full
)

// Delete takes a row out of the sequence that holds it, and returns the sequence as
// it is then and the rank that the row had.
func (o *Order) Delete(root Root, row RowID) (Root, int) {
	ref := uint32(root)
	rank, _, _ := o.remove(ref, o.entryOf(row))
	n := o.blocks.at(ref)
	for isInner(n) && nodeCount(n) == 1 {
		child := n[orderHead]
		o.releaseNode(ref)
		ref = child
		n = o.blocks.at(ref)
	}
	if nodeCount(n) == 0 {
		o.releaseNode(ref)
		return 0, rank
	}
	if !isInner(n) {
		class := nodeClass(n)
		for class > 0 && nodeCount(n)*leafShrinkPart <= leafRoom(class) {
			class--
		}
		if class != nodeClass(n) {
			ref = o.resize(ref, class)
		}
	}
	return Root(ref), rank
}

// remove takes an entry out of a subtree. If the subtree's first entry is another
// one then, isNew is true and first is that.
func (o *Order) remove(ref uint32, e orderEntry) (rank int, first orderEntry, isNew bool) {
	n := o.blocks.at(ref)
	count := nodeCount(n)
	if !isInner(n) {
		at := o.placeIn(n, e)
		if at == count || leafEntry(n, at).row != e.row {
			panic("relation: an order lacks a row")
		}
		entries := n[orderHead : orderHead+2*count]
		copy(entries[2*at:], entries[2*at+2:])
		setCount(n, count-1)
		if at == 0 && count > 1 {
			return at, leafEntry(n, 0), true
		}
		return at, first, false
	}
	child, before := o.childOf(n, e)
	rank, first, isNew = o.remove(n[orderHead+child], e)
	n[orderSizes+child]--
	if isNew && child > 0 {
		setBound(n, child, first)
		isNew = false
	}
	if nodeCount(o.blocks.at(n[orderHead+child])) > 0 {
		o.mergeChild(n, child)
		return before + rank, first, isNew
	}
	o.releaseNode(n[orderHead+child])
	removeChild(n, child)
	if child == 0 && count > 1 {
		return before + rank, bound(n, 0), true
	}
	return before + rank, first, false
}

func removeChild(n []uint32, at int) {
	count := nodeCount(n)
	moveChildren(n, at, n, at+1, count-at-1)
	setCount(n, count-1)
}

// mergeChild merges a small child of an inner node with a sibling that has room.
func (o *Order) mergeChild(n []uint32, child int) {
	c := o.blocks.at(n[orderHead+child])
	small, merged := leafMergeMax, leafMerged
	if isInner(c) {
		small, merged = innerMergeMax, innerMerged
	}
	if nodeCount(c) > small {
		return
	}
	for _, left := range [2]int{child - 1, child} {
		if left < 0 || left+1 >= nodeCount(n) {
			continue
		}
		a, b := o.blocks.at(n[orderHead+left]), o.blocks.at(n[orderHead+left+1])
		have, more := nodeCount(a), nodeCount(b)
		if have+more > merged {
			continue
		}
		if isInner(a) {
			moveChildren(a, have, b, 0, more)
			setBound(a, have, bound(n, left+1))
		} else {
			copy(a[orderHead+2*have:], b[orderHead:orderHead+2*more])
		}
		setCount(a, have+more)
		n[orderSizes+left] += n[orderSizes+left+1]
		o.releaseNode(n[orderHead+left+1])
		removeChild(n, left+1)
		return
	}
}

// Free takes all rows out of a sequence.
func (o *Order) Free(root Root) {
	if root != 0 {
		o.free(uint32(root))
	}
}

func (o *Order) free(ref uint32) {
	n := o.blocks.at(ref)
	if isInner(n) {
		for _, child := range n[orderHead : orderHead+nodeCount(n)] {
			o.free(child)
		}
	}
	o.releaseNode(ref)
}

// Bytes returns the memory that the order holds.
func (o *Order) Bytes() int { return o.blocks.bytes() }
