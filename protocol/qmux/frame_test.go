package qmux

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// The vector file holds one frame a line: its name and its bytes in hex.
func vectors(t testing.TB) map[string][]byte {
	t.Helper()
	file, err := os.Open("testdata/qmux-02/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := make(map[string][]byte)
	for sc := bufio.NewScanner(file); sc.Scan(); {
		name, digits, ok := strings.Cut(sc.Text(), ":")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = b
	}
	return out
}

func TestFrameVectors(t *testing.T) {
	v := vectors(t)
	tests := []struct {
		name  string
		want  frame
		again []byte // what we write for it; nil if we never send this form
	}{
		{"padding", frame{kind: framePadding}, []byte{0}},
		{
			"reset_stream",
			frame{kind: frameReset, id: 4, code: 13, value: 300},
			appendFrame(nil, frameReset, 4, 13, 300),
		},
		{"stop_sending", frame{kind: frameStop, id: 4, code: 0}, appendFrame(nil, frameStop, 4, 0)},
		{
			"stream",
			frame{kind: frameStream, id: 39, offset: 1000, hasOffset: true, data: []byte("hi")},
			data(39, 1000, "hi", false),
		},
		{
			"stream_fin",
			frame{kind: frameStream, id: 39, hasOffset: true, fin: true, data: []byte{}},
			data(39, 0, "", true),
		},
		{"stream_bare", frame{kind: frameStream, id: 2, data: []byte("rest")}, nil},
		{"max_data", frame{kind: frameMaxData, value: 1 << 20}, appendFrame(nil, frameMaxData, 1<<20)},
		{
			"max_stream_data",
			frame{kind: frameMaxStreamData, id: 3, value: 1 << 18},
			appendFrame(nil, frameMaxStreamData, 3, 1<<18),
		},
		{
			"max_streams_bidi",
			frame{kind: frameMaxStreamsBidi, value: 4097},
			appendFrame(nil, frameMaxStreamsBidi, 4097),
		},
		{
			"max_streams_uni",
			frame{kind: frameMaxStreamsUni, value: 101},
			appendFrame(nil, frameMaxStreamsUni, 101),
		},
		{"stream_data_blocked", frame{kind: frameStreamBlocked, id: 3, value: 9}, nil},
		{
			"connection_close",
			frame{kind: frameClose, code: 10, data: []byte("bad")},
			appendClose(nil, 10, "bad"),
		},
		{
			"application_close",
			frame{kind: frameAppClose, code: 7, data: []byte("bye")},
			appendAppClose(nil, 7, "bye"),
		},
		{
			"datagram",
			frame{kind: frameDatagramLen, data: []byte{6, 0, 0x4d, 0xeb, 0x64, 0x67, 0x30}},
			nil,
		},
		{"ping", frame{kind: framePing, value: 5}, appendFrame(nil, framePing, 5)},
		{"pong", frame{kind: framePong, value: 5}, appendFrame(nil, framePong, 5)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := v[test.name]
			got, n, err := parseFrame(b)
			if err != nil || n != len(b) {
				t.Fatalf("consumed %d of %d: %v", n, len(b), err)
			}
			if !sameFrame(got, test.want) {
				t.Errorf("got %+v", got)
			}
			if test.again != nil && !bytes.Equal(test.again, b) {
				t.Errorf("we write % x", test.again)
			}
			for cut := range len(b) {
				if test.name == "stream_bare" && cut >= 2 {
					break // runs to the end of its record, whatever that is
				}
				if _, _, err := parseFrame(b[:cut]); !errors.Is(err, errFrame) {
					t.Errorf("cut to %d bytes: %v", cut, err)
				}
			}
		})
	}
}

func sameFrame(a, b frame) bool {
	data := bytes.Equal(a.data, b.data)
	return data && a.kind == b.kind && a.id == b.id && a.code == b.code && a.value == b.value &&
		a.offset == b.offset && a.hasOffset == b.hasOffset && a.fin == b.fin
}

// What @moq/qmux 0.3.3 sends as its first frame.
func TestParametersOfTheJavaScriptClient(t *testing.T) {
	f, _, err := parseFrame(vectors(t)["parameters_js"])
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseParameters(f.data)
	want := parameters{
		idle: 30 * time.Second, data: 1048576,
		bidiLocal: 262144, bidiRemote: 262144, uni: 262144, bidiCount: 100, uniCount: 100,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	again, _, err := parseFrame(appendParameters(nil, want))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseParameters(again.data); err != nil || got != want {
		t.Errorf("ours came back as %+v, %v", got, err)
	}
}

func TestMalformedParameters(t *testing.T) {
	tests := []struct {
		name string
		body []byte
	}{
		{"truncated", []byte{4}},
		{"value cut short", []byte{4, 2, 1}},
		{"twice", []byte{4, 1, 1, 4, 1, 1}},
		{"trailing byte in a value", []byte{4, 2, 1, 1}},
		{"empty value", []byte{4, 0}},
		{"forbidden", []byte{0x0a, 1, 1}},
		{"reset_stream_at not empty", []byte{0x1d, 1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := parseParameters(test.body); !errors.Is(err, errParameters) {
				t.Errorf("got %v", err)
			}
		})
	}
	if p, err := parseParameters([]byte{0x3f, 1, 1, 0x04, 1, 9}); err != nil || p.data != 9 {
		t.Errorf("unknown ID: %+v, %v", p, err)
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, b := range vectors(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, n, err := parseFrame(b)
		if err != nil {
			if !errors.Is(err, errFrame) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if n < 1 || n > len(b) || len(got.data) > n {
			t.Fatalf("consumed %d of %d", n, len(b))
		}
		if got.kind != frameStream {
			return
		}
		again := appendStreamHeader(nil, got.id, got.offset, len(got.data), got.fin)
		second, _, err := parseFrame(append(again, got.data...))
		got.hasOffset = true
		if err != nil || !sameFrame(got, second) {
			t.Fatalf("%+v came back as %+v, %v", got, second, err)
		}
	})
}

func FuzzParseParameters(f *testing.F) {
	f.Add([]byte{4, 1, 9, 0x3f, 1, 1})
	f.Add(appendParameters(nil, Config{}.parameters())[9:])
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := parseParameters(body)
		if err != nil {
			if !errors.Is(err, errParameters) {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, _, err := parseFrame(appendParameters(nil, p))
		if err != nil {
			t.Fatal(err)
		}
		if q, err := parseParameters(again.data); err != nil || q != p {
			t.Fatalf("%+v came back as %+v, %v", p, q, err)
		}
	})
}

// FuzzRecord feeds whole records, behind the parameters, to a live session.
func FuzzRecord(f *testing.F) {
	f.Add(data(0, 0, "hello", true))
	f.Add(appendFrame(appendFrame(nil, frameReset, 0, 1, 2), frameStop, 0, 3))
	f.Add(appendFrame(nil, frameMaxStreamData, 1, 2))
	f.Fuzz(func(t *testing.T, record []byte) {
		s := unconnected(t, Config{StreamWindowBytes: 64})
		for range 2 {
			if err := s.record(record); err != nil {
				return
			}
		}
		held := uint64(0)
		for _, st := range s.streams {
			held += uint64(st.buffer.len())
		}
		if held > s.ours.data {
			t.Fatalf("%d bytes held", held)
		}
	})
}
