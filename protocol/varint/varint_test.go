package varint

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestRoundTripAtEdges(t *testing.T) {
	cases := map[uint64]int{
		0: 1, 63: 1, 64: 2, 1<<14 - 1: 2, 1 << 14: 4, 1<<30 - 1: 4, 1 << 30: 8, Max: 8,
	}
	for v, size := range cases {
		b := Append(nil, v)
		if len(b) != size || Len(v) != size {
			t.Errorf("%d: %d bytes, Len %d, want %d", v, len(b), Len(v), size)
		}
		got, n, err := Parse(append(b, 0xff))
		if got != v || n != size || err != nil {
			t.Errorf("Parse(%x) = %d, %d, %v", b, got, n, err)
		}
		got, err = Read(bytes.NewReader(b))
		if got != v || err != nil {
			t.Errorf("Read(%x) = %d, %v", b, got, err)
		}
		for cut := range b {
			if _, _, err := Parse(b[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("Parse(%x) = %v", b[:cut], err)
			}
			want := io.ErrUnexpectedEOF
			if cut == 0 {
				want = io.EOF
			}
			if _, err := Read(bytes.NewReader(b[:cut])); !errors.Is(err, want) {
				t.Errorf("Read(%x) = %v", b[:cut], err)
			}
		}
	}
}

// The examples of RFC 9000, appendix A.1, with the form that is too long.
func TestExamplesOfTheRFC(t *testing.T) {
	cases := []struct {
		b []byte
		v uint64
	}{
		{[]byte{0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c}, 151288809941952652},
		{[]byte{0x9d, 0x7f, 0x3e, 0x7d}, 494878333},
		{[]byte{0x7b, 0xbd}, 15293},
		{[]byte{0x25}, 37},
		{[]byte{0x40, 0x25}, 37},
	}
	for _, c := range cases {
		if v, n, err := Parse(c.b); v != c.v || n != len(c.b) || err != nil {
			t.Errorf("Parse(%x) = %d, %d, %v", c.b, v, n, err)
		}
	}
}

func TestOverMaxPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Append": func() { Append(nil, Max+1) },
		"Len":    func() { Len(Max + 1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	boom := errors.New("boom")
	r := struct{ io.ByteReader }{byteReader{iotest.ErrReader(boom)}}
	if _, err := Read(r); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

type byteReader struct{ io.Reader }

func (r byteReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.Reader, b[:])
	return b[0], err
}

func TestZigZag(t *testing.T) {
	for v, want := range map[int64]uint64{
		0: 0, -1: 1, 1: 2, -2: 3, 1<<61 - 1: Max - 1, -1 << 61: Max,
	} {
		got, err := ZigZag(v)
		if got != want || err != nil {
			t.Errorf("ZigZag(%d) = %d, %v", v, got, err)
		}
		if back := UnZigZag(got); back != v {
			t.Errorf("UnZigZag(%d) = %d, want %d", got, back, v)
		}
	}
	if _, err := ZigZag(1 << 61); !errors.Is(err, ErrRange) {
		t.Errorf("over the range: %v", err)
	}
}

func TestNoAllocations(t *testing.T) {
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		buf = Append(Append(buf[:0], 5), 1<<40)
		if _, _, err := Parse(buf); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x40, 0x25})
	f.Add([]byte{0xc0})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, n, err := Parse(b)
		if err != nil {
			return
		}
		again, m, err := Parse(Append(nil, v))
		if again != v || m > n || err != nil {
			t.Errorf("%x: %d then %d, %v", b, v, again, err)
		}
	})
}
