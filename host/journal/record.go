package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// recordFormat is the first byte of every record of format 1.
const recordFormat = 1

// Flags of a record.
const (
	flagProgram = 1 << iota // a program follows the answer part
	flagKey                 // idempotency key, request hash and answer are there
	flagsKnown  = flagProgram | flagKey
)

// recordFixedBytes is the part of a record before its first varint: format,
// previous hash, epoch, revision, time, flags.
const recordFixedBytes = 1 + 32 + 16 + 8 + 8 + 1

// ErrRecord is wrapped by every error of ParseRecord.
var ErrRecord = errors.New("journal: malformed record")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of b, which closes records and heads.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Check returns ErrTooLarge, wrapped, if r is over a limit of format 1, and a
// plain error if r holds what would not be kept.
func (r *Record) Check() error {
	for _, limit := range []struct {
		what         string
		is, atMost   int
		countsNotLen bool
	}{
		{"caller", len(r.Caller), CallerBytesMax, false},
		{"idempotency key", len(r.IdempotencyKey), IdempotencyKeyBytesMax, false},
		{"answer", len(r.Answer), AnswerBytesMax, false},
		{"program", len(r.Program), ProgramBytesMax, false},
		{"mutations", len(r.Mutations), MutationsMax, true},
		{"drops", len(r.Drops), DropsMax, true},
	} {
		if limit.is > limit.atMost {
			unit := " bytes"
			if limit.countsNotLen {
				unit = ""
			}
			return fmt.Errorf("%w: %s: %d%s, at most %d",
				ErrTooLarge, limit.what, limit.is, unit, limit.atMost)
		}
	}
	total := recordFixedBytes + len(r.Program) + len(r.Answer)
	for i := range r.Mutations {
		n := len(r.Mutations[i].Tuple)
		if n > TupleBytesMax {
			return fmt.Errorf("%w: tuple of mutation %d: %d bytes, at most %d",
				ErrTooLarge, i, n, TupleBytesMax)
		}
		if total += n + 2*binary.MaxVarintLen32; total > RecordBytesMax {
			return fmt.Errorf("%w: record: over %d bytes", ErrTooLarge, RecordBytesMax)
		}
	}
	if r.IdempotencyKey == "" && len(r.Answer) > 0 {
		return errors.New("journal: an answer without an idempotency key is not kept")
	}
	return nil
}

// AppendRecord appends r's bytes, linked to the record before it by previous.
// The caller has checked r. SHA-256 of what was appended is r's own hash.
//
// Source: docs/formats/journal.md, "Record".
func AppendRecord(dst []byte, previous *Hash, r *Record) []byte {
	start := len(dst)
	var flags byte
	if r.Program != nil {
		flags |= flagProgram
	}
	if r.IdempotencyKey != "" {
		flags |= flagKey
	}
	dst = append(dst, recordFormat)
	dst = append(dst, previous[:]...)
	dst = append(dst, r.Epoch[:]...)
	dst = binary.BigEndian.AppendUint64(dst, r.Revision)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.TimeMillis))
	dst = append(dst, flags)

	dst = binary.AppendUvarint(dst, uint64(len(r.Drops)))
	for _, relation := range r.Drops {
		dst = binary.AppendUvarint(dst, uint64(relation))
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Mutations)))
	for i := range r.Mutations {
		m := &r.Mutations[i]
		head := uint64(m.Relation) << 1
		if m.Delete {
			head |= 1
		}
		dst = binary.AppendUvarint(dst, head)
		dst = binary.AppendUvarint(dst, uint64(len(m.Tuple)))
		dst = append(dst, m.Tuple...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Caller)))
	dst = append(dst, r.Caller...)
	if flags&flagKey != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(r.IdempotencyKey)))
		dst = append(dst, r.IdempotencyKey...)
		dst = append(dst, r.RequestHash[:]...)
		dst = binary.AppendUvarint(dst, uint64(len(r.Answer)))
		dst = append(dst, r.Answer...)
	}
	if flags&flagProgram != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(r.Program)))
		dst = append(dst, r.Program...)
	}
	return binary.BigEndian.AppendUint32(dst, Checksum(dst[start:]))
}

// ParseRecord reads the record that b holds, nothing more and nothing less, into
// r and returns the hash of the record before it. It reuses r's slices; tuples,
// program and answer alias b. Effective is left false. Every error wraps
// ErrRecord and leaves r without meaning.
//
// Source: docs/formats/journal.md, "Record".
func ParseRecord(r *Record, b []byte) (previous Hash, err error) {
	if len(b) < recordFixedBytes+4 {
		return Hash{}, fmt.Errorf("%w: %d bytes, at least %d",
			ErrRecord, len(b), recordFixedBytes+4)
	}
	if b[0] != recordFormat {
		return Hash{}, fmt.Errorf("%w: format %d, only %d is known",
			ErrRecord, b[0], recordFormat)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if is := Checksum(body); is != sum {
		return Hash{}, fmt.Errorf("%w: CRC-32C is %08x, %08x is written",
			ErrRecord, is, sum)
	}
	*r = Record{Drops: r.Drops[:0], Mutations: r.Mutations[:0]}
	copy(previous[:], body[1:33])
	copy(r.Epoch[:], body[33:49])
	r.Revision = binary.BigEndian.Uint64(body[49:57])
	r.TimeMillis = int64(binary.BigEndian.Uint64(body[57:65]))
	flags := body[65]
	if flags&^flagsKnown != 0 {
		return Hash{}, fmt.Errorf("%w: unknown flags %#02x", ErrRecord, flags)
	}
	p := recordParser{rest: body[recordFixedBytes:]}
	p.changes(r)
	r.Caller = string(p.bytes("caller", CallerBytesMax))
	if flags&flagKey != 0 {
		r.IdempotencyKey = string(p.bytes("idempotency key", IdempotencyKeyBytesMax))
		copy(r.RequestHash[:], p.take("request hash", len(r.RequestHash)))
		r.Answer = p.bytes("answer", AnswerBytesMax)
		if p.err == nil && r.IdempotencyKey == "" {
			p.fail("idempotency key", "empty")
		}
	}
	if flags&flagProgram != 0 {
		r.Program = p.bytes("program", ProgramBytesMax)
	}
	if p.err == nil && len(p.rest) > 0 {
		p.fail("end", fmt.Sprintf("%d bytes too many", len(p.rest)))
	}
	return previous, p.err
}

// recordParser takes fields off the front of rest. After the first error every
// field is empty.
type recordParser struct {
	rest []byte
	err  error
}

func (p *recordParser) fail(field, why string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s: %s", ErrRecord, field, why)
	}
	p.rest = nil
}

func (p *recordParser) uvarint(field string, atMost uint64) uint64 {
	if p.err != nil {
		return 0
	}
	v, n := binary.Uvarint(p.rest)
	switch {
	case n <= 0:
		p.fail(field, "number cut short or too long")
		return 0
	case n > 1 && p.rest[n-1] == 0:
		// One spelling a number, so that parsing and appending give the same hash.
		p.fail(field, "number not in its shortest form")
		return 0
	case v > atMost:
		p.fail(field, fmt.Sprintf("%d, at most %d", v, atMost))
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *recordParser) take(field string, n int) []byte {
	if p.err != nil {
		return nil
	}
	if n > len(p.rest) {
		p.fail(field, fmt.Sprintf("%d bytes, only %d are left", n, len(p.rest)))
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

func (p *recordParser) bytes(field string, atMost int) []byte {
	return p.take(field, int(p.uvarint(field, uint64(atMost))))
}

func (p *recordParser) changes(r *Record) {
	drops := p.uvarint("drops", DropsMax)
	for i := uint64(0); i < drops && p.err == nil; i++ {
		r.Drops = append(r.Drops, uint32(p.uvarint("dropped relation", math.MaxUint32)))
	}
	mutations := p.uvarint("mutations", MutationsMax)
	for i := uint64(0); i < mutations && p.err == nil; i++ {
		head := p.uvarint("relation", math.MaxUint32<<1|1)
		tuple := p.bytes("tuple", TupleBytesMax)
		r.Mutations = append(r.Mutations, Mutation{
			Relation: uint32(head >> 1), Tuple: tuple, Delete: head&1 != 0,
		})
	}
}
