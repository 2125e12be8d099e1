package relation

// blocks is an arena of small blocks of words. Blocks of one class have one size,
// and freed ones are used again by their class. It holds no pointers, and only its
// first chunk is ever recopied, while that is smaller than the others.
type blocks struct {
	sizes  []int // words of a block by class, even
	chunks [][]uint32
	used   int      // words of the last chunk
	free   []uint32 // the first free block of each class; the link is in its first word
	live   int      // blocks that are not free
}

const (
	blockChunkBits  = 16 // words of a chunk, as a power of two
	blockChunkWords = 1 << blockChunkBits
	blockFirstWords = 64
)

func newBlocks(sizes []int) blocks {
	return blocks{sizes: sizes, free: make([]uint32, len(sizes))}
}

// at returns the words from a block's first to the end of its chunk. The slice is
// valid until the next alloc.
func (b *blocks) at(ref uint32) []uint32 {
	word := uint64(ref-1) * 2
	return b.chunks[word>>blockChunkBits][word&(blockChunkWords-1):]
}

// alloc returns a block, which is not cleared. References are never 0.
func (b *blocks) alloc(class int) uint32 {
	b.live++
	if ref := b.free[class]; ref != 0 {
		b.free[class] = b.at(ref)[0]
		return ref
	}
	size := b.sizes[class]
	last := len(b.chunks) - 1
	switch {
	case last < 0 || b.used+size > blockChunkWords:
		words := blockChunkWords
		if last < 0 {
			words = max(blockFirstWords, size)
		}
		b.chunks = append(b.chunks, make([]uint32, words))
		b.used = 0
		last++
	case b.used+size > len(b.chunks[last]):
		words := min(max(2*len(b.chunks[last]), b.used+size), blockChunkWords)
		grown := make([]uint32, words)
		copy(grown, b.chunks[last])
		b.chunks[last] = grown
	}
	at := uint64(last)<<blockChunkBits + uint64(b.used)
	if at/2 >= 1<<32-1 {
		panic("relation: an order is full")
	}
	b.used += size
	return uint32(at/2) + 1
}

// release gives a block back. With the last one goes the memory of a large arena.
func (b *blocks) release(ref uint32, class int) {
	if b.live--; b.live == 0 && len(b.chunks) > 1 {
		*b = newBlocks(b.sizes)
		return
	}
	b.at(ref)[0] = b.free[class]
	b.free[class] = ref
}

func (b *blocks) bytes() int {
	n := 0
	for _, c := range b.chunks {
		n += 4 * len(c)
	}
	return n
}
