package pebble

import (
	"encoding/binary"
	"fmt"

	"github.com/heddle-live/heddle/host/journal"
)

// head is what a graph's log has come to; every batch rewrites it.
type head struct {
	journal.Position
	first           uint64 // oldest kept revision; 1 at first, even while there is none
	facts           journal.FactSet
	programRevision uint64 // 0: no program yet
}

const (
	headFormat = 1
	headBytes  = 1 + 8 + 16 + 8 + 32 + 4*8 + 4
)

// appendHead appends a head's bytes.
//
// Source: docs/formats/journal.md, "Head".
func appendHead(dst []byte, h *head) []byte {
	start := len(dst)
	dst = append(dst, headFormat)
	dst = binary.BigEndian.AppendUint64(dst, h.Opening)
	dst = append(dst, h.Epoch[:]...)
	dst = binary.BigEndian.AppendUint64(dst, h.Revision)
	dst = append(dst, h.Hash[:]...)
	dst = binary.BigEndian.AppendUint64(dst, h.first)
	dst = binary.BigEndian.AppendUint64(dst, h.facts.Count)
	dst = binary.BigEndian.AppendUint64(dst, h.facts.Sum)
	dst = binary.BigEndian.AppendUint64(dst, h.programRevision)
	return binary.BigEndian.AppendUint32(dst, journal.Checksum(dst[start:]))
}

// parseHead reads the head that b holds.
//
// Source: docs/formats/journal.md, "Head".
func parseHead(b []byte) (head, error) {
	if len(b) != headBytes {
		return head{}, fmt.Errorf("%d bytes, expected %d", len(b), headBytes)
	}
	if b[0] != headFormat {
		return head{}, fmt.Errorf("format %d, only %d is known", b[0], headFormat)
	}
	body, sum := b[:headBytes-4], binary.BigEndian.Uint32(b[headBytes-4:])
	if is := journal.Checksum(body); is != sum {
		return head{}, fmt.Errorf("CRC-32C is %08x, %08x is written", is, sum)
	}
	var h head
	h.Opening = binary.BigEndian.Uint64(b[1:])
	copy(h.Epoch[:], b[9:25])
	h.Revision = binary.BigEndian.Uint64(b[25:])
	copy(h.Hash[:], b[33:65])
	h.first = binary.BigEndian.Uint64(b[65:])
	h.facts.Count = binary.BigEndian.Uint64(b[73:])
	h.facts.Sum = binary.BigEndian.Uint64(b[81:])
	h.programRevision = binary.BigEndian.Uint64(b[89:])
	if h.first == 0 || h.first > max(h.Revision, 1) || h.programRevision > h.Revision ||
		h.Opening > journal.OpeningMax {
		return head{}, fmt.Errorf("impossible: %+v", h)
	}
	return h, nil
}

// appendProgram appends the value of a program key: CRC-32C, then the program.
func appendProgram(dst, program []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, journal.Checksum(program))
	return append(dst, program...)
}

// parseProgram returns the program in b, which it aliases.
func parseProgram(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%d bytes, at least 4", len(b))
	}
	if is, sum := journal.Checksum(b[4:]), binary.BigEndian.Uint32(b); is != sum {
		return nil, fmt.Errorf("CRC-32C is %08x, %08x is written", is, sum)
	}
	return b[4:], nil
}

// appendReceipt appends the value of a receipt key: revision, request hash,
// answer, CRC-32C.
func appendReceipt(dst []byte, r *journal.Record) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, r.Revision)
	dst = append(dst, r.RequestHash[:]...)
	dst = append(dst, r.Answer...)
	return binary.BigEndian.AppendUint32(dst, journal.Checksum(dst[start:]))
}

// parseReceipt reads the receipt in b; its answer aliases b.
func parseReceipt(b []byte) (journal.Receipt, error) {
	if len(b) < 8+32+4 {
		return journal.Receipt{}, fmt.Errorf("%d bytes, at least %d", len(b), 8+32+4)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if is := journal.Checksum(body); is != sum {
		return journal.Receipt{}, fmt.Errorf("CRC-32C is %08x, %08x is written", is, sum)
	}
	r := journal.Receipt{Revision: binary.BigEndian.Uint64(b), Answer: body[40:]}
	copy(r.RequestHash[:], b[8:40])
	return r, nil
}
