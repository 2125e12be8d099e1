package frame

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

const testEpoch = "01938f2c-0000-7000-8000-000000000001"

// exampleFrame appends the frame that ARCHITECTURE and the manual show.
func exampleFrame(dst []byte) []byte {
	dst = AppendFrameStart(dst, Header{Revision: 8, Epoch: testEpoch, Schema: 3})
	dst = AppendSnapshotStart(dst)
	for _, y := range []int64{1, 9} {
		dst = AppendRowStart(dst)
		dst = AppendInt(dst, 4)
		dst = AppendInt(dst, y)
		dst = AppendRowEnd(dst)
	}
	dst = AppendRowsEnd(dst)
	dst = AppendLast(dst)
	dst = AppendBase(dst, 7)
	dst = AppendInsertStart(dst)
	dst = AppendRow(dst, Row{int64(4), int64(9)})
	dst = AppendRowsEnd(dst)
	dst = AppendRowsEnd(AppendRetractStart(dst))
	return AppendFrameEnd(dst)
}

const exampleText = `{"revision":8,"epoch":"` + testEpoch + `","schema":3,` +
	`"snapshot":[[4,1],[4,9]],"last":true,"base":7,"insert":[[4,9]],"retract":[]}`

func TestAppendFrame(t *testing.T) {
	// Bytes in front of the frame are left alone, whatever they are.
	if got := string(exampleFrame([]byte("front["))); got != "front["+exampleText {
		t.Errorf("got  %s\nwant front[%s", got, exampleText)
	}
}

func TestAppendUnits(t *testing.T) {
	b := AppendFrameStart(nil, Header{Revision: 9, Epoch: "e", Schema: 1})
	b = AppendKeysStart(b)
	for _, key := range []string{"4", "a~2fb"} {
		b = AppendUnitStart(b, key)
		b = AppendRowsEnd(AppendSnapshotStart(b))
		b = AppendInsertStart(b)
		b = AppendRowsEnd(AppendRow(b, Row{"x"}))
		b = AppendUnitEnd(b)
	}
	b = AppendUnitStart(b, "7")
	b = AppendClosed(b, Closed{Code: ClosedTokenExpired})
	b = AppendUnitsEnd(AppendUnitEnd(b))
	b = AppendFrameEnd(AppendBase(AppendLast(b), 8))
	want := `{"revision":9,"epoch":"e","schema":1,"keys":{"4":{"snapshot":[],"insert":[["x"]]},` +
		`"a~2fb":{"snapshot":[],"insert":[["x"]]},` +
		`"7":{"closed":{"code":"token_expired","message":""}}},` +
		`"last":true,"base":8}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	b = AppendPartsStart(AppendFrameStart(nil, Header{}))
	b = AppendFrameEnd(AppendUnitsEnd(AppendUnitEnd(AppendUnitStart(b, "p"))))
	if want := `{"revision":0,"epoch":"","schema":0,"parts":{"p":{}}}`; string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestAppendStaleAndClosed(t *testing.T) {
	b := AppendFrameStart(nil, Header{Revision: 1, Epoch: "e"})
	stale := Stale{Code: StaleError, Message: `"x"`, Rule: "r1", Row: Row{int64(1), "a", 0.5, true}}
	b = AppendStale(b, stale)
	b = AppendClosed(b, Closed{Code: ClosedViewDropped, Message: "gone"})
	b = AppendFrameEnd(b)
	want := `{"revision":1,"epoch":"e","schema":0,` +
		`"stale":{"code":"error","message":"\"x\"","rule":"r1","row":[1,"a",0.5,true]},` +
		`"closed":{"code":"view_dropped","message":"gone"}}`
	if string(b) != want {
		t.Fatalf("got  %s\nwant %s", b, want)
	}
	f, err := ParseFrame(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.Stale, &stale) {
		t.Errorf("stale %+v", f.Stale)
	}
	if want := (&Closed{"view_dropped", "gone"}); !reflect.DeepEqual(f.Closed, want) {
		t.Errorf("closed %+v", f.Closed)
	}
	got := string(AppendStale(nil, Stale{Code: StaleBehind}))
	if got != `"stale":{"code":"behind","message":""}` {
		t.Errorf("stale without rule and row: %s", got)
	}
}

func TestAppendCells(t *testing.T) {
	for _, c := range []struct {
		name string
		cell any
		want string
	}{
		{"zero", int64(0), "0"},
		{"largest exact", int64(1<<53 - 1), "9007199254740991"},
		{"beyond exact", int64(1 << 53), `"9007199254740992"`},
		{"smallest exact", int64(-(1<<53 - 1)), "-9007199254740991"},
		{"below exact", int64(-(1 << 53)), `"-9007199254740992"`},
		{"smallest", int64(math.MinInt64), `"-9223372036854775808"`},
		{"float", 1.0, "1"},
		{"negative zero", math.Copysign(0, -1), "0"},
		{"last plain", 999999999999999868928.0, "999999999999999900000"},
		{"first exponent", 1e21, "1e+21"},
		{"small plain", 1e-6, "0.000001"},
		{"small exponent", 1e-7, "1e-7"},
		{"two digits", 1e-10, "1e-10"},
		{"plain text", "plain", `"plain"`},
		{
			"escapes", "\"\\/\b\f\n\r\t\x00\x1f\x7f<>&\u2028",
			"\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f<>&\u2028\"",
		},
		{"brackets", "[{", `"[{"`},
		{"not ascii", "Zürich 🧵", `"Zürich 🧵"`},
		{"false", false, "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(AppendCell([]byte("["), c.cell))
			if got != "["+c.want {
				t.Fatalf("got %s, want [%s", got, c.want)
			}
			if next := string(AppendCell([]byte(got), true)); next != got+",true" {
				t.Fatalf("after a cell: %s", next)
			}
			if !json.Valid([]byte(c.want)) {
				t.Fatalf("%s is not JSON", c.want)
			}
		})
	}
}

func TestAppendCellPanicsOnOtherTypes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	AppendCell(nil, 7) // an int, not an int64
}

func TestAppendAllocations(t *testing.T) {
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		buf = exampleFrame(buf[:0])
		buf = AppendFloat(buf, 1e-7)
		buf = AppendString(buf, "a\nb")
		buf = AppendBytes(buf, "a\x00b\xff")
		buf = AppendNull(AppendTimestamp(buf, 7))
	}); n != 0 {
		t.Errorf("appending a frame allocates %v times", n)
	}
}

func TestMetaRoundTrip(t *testing.T) {
	for _, m := range []*Meta{
		{
			View: "hot", Schema: 3, Text: "view hot($head: int) := ?r1($head, Y)",
			Parameters: []Column{{Name: "head", Type: Int}},
			Columns:    []Column{{Name: "head", Type: Int}, {Name: "Y", Type: String, Nullable: true}},
		},
		{
			View: "v", Text: `"`, Parameters: []Column{}, Columns: []Column{},
			Parts: []Part{
				{"b", []Column{{Name: "x", Type: BytesType}}},
				{"a", []Column{{Name: "y", Type: TimestampType}}},
			},
		},
	} {
		b := AppendMeta(nil, m)
		got, err := ParseMeta(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s\nreads as %+v, %v", b, got, err)
		}
	}
	text := `{"columns":[{"type":"decimal","name":"d","more":1}],"view":"v","x":[{}]}`
	m, err := ParseMeta([]byte(text))
	if err != nil || len(m.Columns) != 1 || m.Columns[0] != (Column{Name: "d"}) {
		t.Errorf("unknown type: %+v, %v", m, err)
	}
	for _, bad := range []string{
		``, `{}`, `[]`, `{"view":1}`, `{"view":"v","columns":{}}`, `{"view":"v","columns":[1]}`,
	} {
		if _, err := ParseMeta([]byte(bad)); err == nil {
			t.Errorf("ParseMeta(%s) succeeds", bad)
		}
	}
}

func TestProgressRoundTrip(t *testing.T) {
	b := AppendProgress(nil, Progress{Epoch: testEpoch, Durable: 12, Published: 11})
	if want := `{"epoch":"` + testEpoch + `","durable":12,"published":11}`; string(b) != want {
		t.Fatalf("got %s", b)
	}
	p, err := ParseProgress(b)
	if err != nil || p != (Progress{testEpoch, 12, 11}) {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := ParseProgress([]byte(`{"durable":-1}`)); err == nil {
		t.Error("negative revision accepted")
	}
}

func BenchmarkAppendFrame(b *testing.B) {
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = exampleFrame(buf[:0])
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

func BenchmarkParseFrame(b *testing.B) {
	payload := exampleFrame(nil)
	meta := &Meta{View: "hot", Columns: []Column{{Name: "head", Type: Int}, {Name: "Y", Type: Int}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseFrame(payload, meta); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}
