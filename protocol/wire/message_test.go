package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/heddle-live/heddle/protocol/varint"
)

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func TestReadMessage(t *testing.T) {
	long := bytes.Repeat([]byte{7}, MaxMessageBytes)
	cases := []struct {
		name string
		in   []byte
		want []byte
		err  error
	}{
		{"empty body", []byte{0}, nil, nil},
		{"longest body", append(varint.Append(nil, MaxMessageBytes), long...), long, nil},
		{"over the cap", varint.Append(nil, MaxMessageBytes+1), nil, ErrBounds},
		{"nothing", nil, nil, io.EOF},
		{"half a length", []byte{0x40}, nil, io.ErrUnexpectedEOF},
		{"no body", []byte{3}, nil, io.ErrUnexpectedEOF},
		{"half a body", []byte{3, 1, 2}, nil, io.ErrUnexpectedEOF},
		{"half a long body", append(varint.Append(nil, 60000), long[:9000]...), nil, io.ErrUnexpectedEOF},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadMessage(bytes.NewReader(c.in), nil)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err == nil && !bytes.Equal(got, c.want) {
				t.Errorf("%d bytes, want %d", len(got), len(c.want))
			}
		})
	}
}

// A length alone must not make the receiver allocate what it promises.
func TestReadMessageAllocatesAsBytesCome(t *testing.T) {
	in := append(varint.Append(nil, MaxMessageBytes), 1, 2, 3)
	got, err := ReadMessage(bytes.NewReader(in), nil)
	if !errors.Is(err, io.ErrUnexpectedEOF) || cap(got) > 2*bodyStepBytes {
		t.Errorf("capacity %d, %v", cap(got), err)
	}
}

func TestReadFrame(t *testing.T) {
	b, err := AppendFrame(nil, -3, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	big, err := AppendFrame(nil, 0, make([]byte, 300_000))
	if err != nil {
		t.Fatal(err)
	}
	r := byteReader{iotest.OneByteReader(bytes.NewReader(b))}
	delta, payload, err := ReadFrame(r, 5)
	if delta != -3 || string(payload) != "hello" || err != nil {
		t.Errorf("%d %q %v", delta, payload, err)
	}
	if _, _, err := ReadFrame(r, 5); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
	if _, _, err := ReadFrame(bytes.NewReader(b), 4); !errors.Is(err, ErrBounds) {
		t.Errorf("over the limit: %v", err)
	}
	if _, p, err := ReadFrame(bytes.NewReader(big), MaxFrameBytes); len(p) != 300_000 || err != nil {
		t.Errorf("big frame: %d bytes, %v", len(p), err)
	}
	for cut := 1; cut < len(b); cut++ {
		if _, _, err := ReadFrame(bytes.NewReader(b[:cut]), 5); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	if _, err := AppendFrame(nil, 1<<61, nil); !errors.Is(err, varint.ErrRange) {
		t.Errorf("delta over the range: %v", err)
	}
}

type byteReader struct{ io.Reader }

func (r byteReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r.Reader, b[:])
	return b[0], err
}

func TestHotAppendsDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 256)
	payload := []byte("payload")
	n := testing.AllocsPerRun(100, func() {
		buf = AppendGroup(buf[:0], Group{SubscribeID: 3, Sequence: 1 << 40})
		var err error
		if buf, err = AppendFrame(buf, 1000, payload); err != nil {
			t.Fatal(err)
		}
		buf = AppendSubscribe(buf, Subscribe{ID: 1, Broadcast: "g/v", Track: "rows"})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3})
	f.Add([]byte{0x80, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := ReadMessage(bytes.NewReader(b), nil)
		if err == nil && len(body) > MaxMessageBytes {
			t.Errorf("%d bytes", len(body))
		}
	})
}

func TestReadMessageWithin(t *testing.T) {
	in := append(varint.Append(nil, 3*bodyStepBytes), make([]byte, 3*bodyStepBytes)...)
	enough := errors.New("enough")
	held := 0
	got, err := ReadMessageWithin(bytes.NewReader(in), nil, func(n int) error {
		if held += n; held > 2*bodyStepBytes {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || len(got) != 2*bodyStepBytes {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
