package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// testProgram has a base relation of each kind of column, a derived one and a view.
func testProgram() *analysis.Program {
	column := func(name string, k value.Kind) analysis.Column { return analysis.Column{Name: name, Type: k} }
	return &analysis.Program{
		Relations: []analysis.Relation{
			{Name: "edge", Columns: []analysis.Column{column("src", value.Int), column("dst", value.Int)}},
			{Name: "item", Columns: []analysis.Column{
				column("sku", value.String), column("price", value.Float), column("open", value.Bool),
			}},
			{Name: "hop2", Derived: true, Columns: []analysis.Column{
				column("X", value.Int), column("Z", value.Int),
			}},
			{Name: "note", Columns: []analysis.Column{
				column("body", value.Bytes), column("at", value.Timestamp),
				{Name: "by", Type: value.String, Nullable: true},
				{Name: "n", Type: value.Int, Nullable: true},
			}},
		},
		Views: []analysis.View{{Name: "links", Parts: make([]analysis.Part, 1)}},
	}
}

// opsText spells operations one a word: +edge(1,2) -edge(3,4).
func opsText(ops []Op) string {
	var words []string
	for _, op := range ops {
		sign, cells := "+", make([]string, len(op.Row))
		if op.Delete {
			sign = "-"
		}
		for i, v := range op.Row {
			cells[i] = v.String()
		}
		words = append(words, sign+op.Relation+"("+strings.Join(cells, ",")+")")
	}
	return strings.Join(words, " ")
}

func TestDecodeTransaction(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"one row", `{"insert":{"edge":[[1,2]]}}`, "+edge(1,2)"},
		{"white space", " {\n\t\"insert\" : { \"edge\" : [ [ 1 , 2 ] , [3,4] ] } } \r\n", "+edge(1,2) +edge(3,4)"},
		{"deletions come first", `{"insert":{"edge":[[1,2]]},"delete":{"edge":[[3,4]]}}`, "-edge(3,4) +edge(1,2)"},
		{"deletions stand first", `{"delete":{"edge":[[3,4]]},"insert":{"edge":[[1,2]]}}`, "-edge(3,4) +edge(1,2)"},
		{"several relations", `{"insert":{"edge":[[1,2]],"item":[["a",1,true]]}}`, `+edge(1,2) +item("a",1.0,true)`},
		{"no rows", `{"insert":{"edge":[]},"delete":{}}`, ""},
		{
			"limits of int", `{"insert":{"edge":[[-9223372036854775808,9223372036854775807]]}}`,
			"+edge(-9223372036854775808,9223372036854775807)",
		},
		{
			"ints as strings", `{"insert":{"edge":[["9007199254740993","-7"],["0",-0]]}}`,
			"+edge(9007199254740993,-7) +edge(0,0)",
		},
		{
			"floats", `{"insert":{"item":[["",1e3,true],["",-0.0,false],["",1e-400,true]]}}`,
			`+item("",1000.0,true) +item("",0.0,false) +item("",0.0,true)`,
		},
		{
			"escapes", `{"insert":{"item":[["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é",1,true]]}}`,
			`+item("\"\\/\u0008\u000c\n\r\té😀é",1.0,true)`,
		},
		{
			"bytes, times and null", `{"insert":{"note":[["AP8=",1796040000250,null,null],` +
				`["","2026-11-30T13:00:00+01:00","",7],["","9223372036854775807","a",null]]}}`,
			`+note(x"00ff",t"2026-11-30T12:00:00.25Z",null,null) ` +
				`+note(x"",t"2026-11-30T12:00:00Z","",7) ` +
				`+note(x"",9223372036854775807,"a",null)`,
		},
		{"escaped names", `{"insert":{"\u0065dge":[[1,2]]}}`, "+edge(1,2)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := decodeTransaction(testProgram(), tt.body)
			if err != nil || d.text != "" {
				t.Fatalf("text %q, error %v", d.text, err)
			}
			if got := opsText(d.ops); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDecodeTransactionProgram(t *testing.T) {
	d, err := decodeTransaction(testProgram(), `{"program":"+edge(1, 2)\n","expect_revision":"7"}`)
	if err != nil || len(d.ops) != 0 || d.text != "+edge(1, 2)\n" || *d.atRevision != 7 {
		t.Errorf("%+v, error %v", d, err)
	}
}

func TestDecodeTransactionRefuses(t *testing.T) {
	tests := []struct{ name, body, code, want string }{
		{"empty body", ``, "json_invalid", "line 1, column 1 of the body: expected a JSON object, found the end of the body"},
		{"not an object", `[1]`, "json_invalid", "expected a JSON object, found an array"},
		{"empty object", `{}`, "json_invalid", "the transaction is empty"},
		{"unknown member", `{"insrt":{}}`, "json_invalid", `unknown member "insrt"`},
		{"member twice", `{"insert":{},"insert":{}}`, "json_invalid", `member "insert" appears twice`},
		{"program and rows", `{"insert":{},"program":"x"}`, "json_invalid", `"program" stands alone`},
		{"program not text", `{"program":7}`, "json_invalid", `"program" must be a string, found a number`},
		{"program empty", `{"program":""}`, "json_invalid", `"program" is empty`},
		{"relation twice", `{"insert":{"edge":[],"edge":[]}}`, "json_invalid", `"edge" appears twice under "insert"`},
		{"unknown relation", `{"insert":{"egde":[[1,2]]}}`, "relation_unknown", `there is no relation "egde"`},
		{"derived relation", `{"insert":{"hop2":[[1,2]]}}`, "relation_derived", "hop2 is defined by rules"},
		{"a view", `{"insert":{"links":[[1,2]]}}`, "relation_unknown", "links is a view"},
		{"rows not a list", `{"insert":{"edge":{"a":1}}}`, "json_invalid", "expected a list of rows [[…], …], found an object"},
		{"rest", `{"insert":{}} {}`, "json_invalid", "expected the end of the body, found an object"},
		{"missing comma", "{\"insert\":{\"edge\":[[1 2]]}}", "json_invalid", "line 1, column 23 of the body: expected ',' or ']', found a number"},
		{"trailing comma", `{"insert":{"edge":[[1,2],]}}`, "json_invalid", "a comma must not stand before ']'"},
		{"unended string", `{"insert":{"item":[["a`, "json_invalid", "does not end"},
		{"control character", "{\"insert\":{\"item\":[[\"a\n\"", "json_invalid", `write \u000a`},
		{"bad escape", `{"insert":{"item":[["\x",1,true]]}}`, "json_invalid", "not an escape of JSON"},
		{"half a surrogate", `{"insert":{"item":[["\ud83d",1,true]]}}`, "json_invalid", "not an escape of JSON"},
		{"leading zero", `{"insert":{"edge":[[01,2]]}}`, "json_invalid", "no leading zeros"},
		{"NaN", `{"insert":{"edge":[[NaN,2]]}}`, "json_invalid", "expected a value, found 'N'"},
		{"not UTF-8", "{\"insert\":\n{\"item\":[[\"\xff\",1,true]]}}", "json_invalid", "line 2, column 12 of the body: the body is not UTF-8"},
		{
			"fraction in int", `{"insert":{"edge":[[1.0,2]]}}`, "rows_invalid",
			"row 1 of edge, column src: expected an int, got 1.0",
		},
		{
			"exponent in int", `{"insert":{"edge":[[1,1e3]]}}`, "rows_invalid",
			"row 1 of edge, column dst: expected an int, got 1e3",
		},
		{"int too large", `{"insert":{"edge":[[1,9223372036854775808]]}}`, "rows_invalid", "got 9223372036854775808"},
		{"odd int string", `{"insert":{"edge":[[1,"+7"]]}}`, "rows_invalid", `got "+7"`},
		{"float too large", `{"insert":{"item":[["a",1e999,true]]}}`, "rows_invalid", "expected a float, got 1e999"},
		{"int string too large", `{"insert":{"edge":[[1,"9223372036854775808"]]}}`, "rows_invalid", "ints reach"},
		{"exponent out of range", `{"insert":{"edge":[[1,1e999]]}}`, "rows_invalid", "ints reach"},
		{"float as string", `{"insert":{"item":[["a","1",true]]}}`, "rows_invalid", `expected a float, got "1"`},
		{"number as string", `{"insert":{"item":[[7,1,true]]}}`, "rows_invalid", "expected a string, got 7"},
		{"bool as number", `{"insert":{"item":[["a",1,1]]}}`, "rows_invalid", "expected true or false, got 1"},
		{"null", `{"insert":{"item":[["a",1,null]]}}`, "rows_invalid", "expected true or false, got null"},
		{"null hint", `{"insert":{"item":[["a",1,null]]}}`, "rows_invalid", "declare open: bool?"},
		{"null or", `{"insert":{"note":[["",1,7,1]]}}`, "rows_invalid", "expected a string or null, got 7"},
		{"not base64", `{"insert":{"note":[["AP8",1,"",1]]}}`, "rows_invalid", `expected bytes in base64, got "AP8"`},
		{"bytes as number", `{"insert":{"note":[[7,1,"",1]]}}`, "rows_invalid", "in base64 with padding"},
		{"not a time", `{"insert":{"note":[["","2026-11-30","",1]]}}`, "rows_invalid", `expected a timestamp, got "2026-11-30"`},
		{"fraction in timestamp", `{"insert":{"note":[["",1.5,"",1]]}}`, "rows_invalid", "expected a timestamp, got 1.5"},
		{"nested", `{"insert":{"edge":[[1,{"a":[1,"x",true]}]]}}`, "rows_invalid", "expected an int, got an object"},
		{"too deep", `{"insert":{"edge":[[1,` + strings.Repeat("[", 100), "json_invalid", "nested deeper than 64"},
		{"too few", `{"insert":{"edge":[[1]]}}`, "rows_invalid", "row 1 of edge: expected 2 values, got 1"},
		{"too many", `{"insert":{"edge":[[1,2,3]]}}`, "rows_invalid", "row 1 of edge: expected 2 values, got 3"},
		{
			"row as object", `{"insert":{"edge":[[1,2],{"src":1}]}}`, "rows_invalid",
			"row 2 of edge: expected 2 values, got an object (a row is a list of values)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := decodeTransaction(testProgram(), tt.body)
			p, ok := errors.AsType[*Problem](err)
			if !ok {
				t.Fatalf("ops %v, error %v: want a Problem", d.ops, err)
			}
			text := p.Text()
			if p.Code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("code %s\n%s\nwant %s with %q", p.Code, text, tt.code, tt.want)
			}
			if len(p.Errors) == 0 {
				t.Error("no place is named")
			}
		})
	}
}

func TestDecodeTransactionNamesRows(t *testing.T) {
	body := "{\"insert\": {\"edge\": [\n  [1, 2],\n  [3, \"x\"]\n]}}"
	_, err := decodeTransaction(testProgram(), body)
	p, _ := errors.AsType[*Problem](err)
	want := Detail{
		Message: `row 2 of edge, column dst: expected an int, got "x"`, Location: "insert.edge[1]",
		Line: 3, Column: 7, Hint: p.Errors[0].Hint, Relation: "edge", Row: 2, ColumnName: "dst",
		Expected: "an int", Got: `"x"`,
	}
	if p.Errors[0] != want {
		t.Errorf("got  %+v\nwant %+v", p.Errors[0], want)
	}
}

func TestDecodeTransactionCountsAllRows(t *testing.T) {
	body := `{"insert":{"edge":[` + strings.Repeat(`["a","b"],`, 50) + `[1,2]]}}`
	_, err := decodeTransaction(testProgram(), body)
	p, _ := errors.AsType[*Problem](err)
	if p == nil || len(p.Errors) != errorsMax || p.ErrorCount != 100 {
		t.Fatalf("got %+v, want %d errors of 100", p, errorsMax)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"edge", "label", "x"}
	for name, want := range map[string]string{
		"egde": "edge", "edges": "edge", "lable": "label", "labell": "label", "other": "", "": "",
		"y": "", strings.Repeat("e", 100): "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func csvOps(csv string, header bool, rowsMax int, relation int) ([]Op, error) {
	plain, err := unpack(strings.NewReader(csv), 1<<20)
	if err != nil {
		return nil, err
	}
	return decodeCSV(plain, &testProgram().Relations[relation], header, rowsMax)
}

func TestDecodeCSV(t *testing.T) {
	tests := []struct {
		name, csv string
		header    bool
		relation  int
		want      string
	}{
		{"header in order", "src,dst\n1,2\n", true, 0, "+edge(1,2)"},
		{"header permuted", "dst,src\n1,2\n3,4\n", true, 0, "+edge(2,1) +edge(4,3)"},
		{"no header", "1,2\r\n3,4", false, 0, "+edge(1,2) +edge(3,4)"},
		{"byte order mark", "\ufeffsrc,dst\n1,2\n", true, 0, "+edge(1,2)"},
		{"byte order mark without header", "\ufeff1,2\n", false, 0, "+edge(1,2)"},
		{"header only", "src,dst\n", true, 0, ""},
		{"empty without header", "", false, 0, ""},
		{"spaces in header", "src, dst\n1,2\n", true, 0, "+edge(1,2)"},
		{"quoted newlines", "open,sku,price\ntrue,\"a\n\"\"b\"\",c\",1.5\n", true, 1, `+item("a\n\"b\",c",1.5,true)`},
		{"empty string", "sku,price,open\n,-0,false\n", true, 1, `+item("",0.0,false)`},
		{
			"bytes, times and null", "body,at,by,n\nAP8=,2026-11-30T12:00:00Z,,\n,7,a,7\n", true, 3,
			`+note(x"00ff",t"2026-11-30T12:00:00Z",null,null) +note(x"",t"1970-01-01T00:00:00.007Z","a",7)`,
		},
		{"empty lines", "src,dst\n\n1,2\n\n", true, 0, "+edge(1,2)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ops, err := csvOps(tt.csv, tt.header, 100, tt.relation)
			if err != nil {
				t.Fatal(err)
			}
			if got := opsText(ops); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDecodeCSVRefuses(t *testing.T) {
	tests := []struct {
		name, csv string
		header    bool
		relation  int
		code      string
		want      string
	}{
		{"empty", "", true, 0, "header_invalid", "the file is empty"},
		{"header misspelt", "src,dts\n", true, 0, "header_invalid", `names "dts", which is no column of edge`},
		{"header hint", "src,dts\n", true, 0, "header_invalid", `did you mean "dst"?; the columns of edge are (src: int, dst: int)`},
		{"data as header", "1,2\n", true, 0, "header_invalid", "--no-header"},
		{"header twice", "src,src\n", true, 0, "header_invalid", "names src twice"},
		{"header short", "src\n1\n", true, 0, "header_invalid", "lacks the column dst"},
		{"semicolons", "src;dst\n1;2\n", true, 0, "header_invalid", `separated by ";"`},
		{"header not CSV", "src,\"dst\n", true, 0, "header_invalid", "is not CSV"},
		{"UTF-16", "\xff\xfes\x00", true, 0, "not_utf8", "UTF-16"},
		{
			"not an int", "src,dst\n1,2\n3,x\n", true, 0, "rows_invalid",
			`line 3: row 2 of edge, column dst: expected an int, got "x"`,
		},
		{"space", "src,dst\n1, 2\n", true, 0, "rows_invalid", "no spaces around a number"},
		{"plus", "src,dst\n1,+2\n", true, 0, "rows_invalid", `got "+2"`},
		{"plus hint", "src,dst\n1,+2\n", true, 0, "rows_invalid", "without +: 2"},
		{"empty int", "src,dst\n1,\n", true, 0, "rows_invalid", `got ""`},
		{"empty hint", "src,dst\n1,\n", true, 0, "rows_invalid", "the field is empty"},
		{"fraction", "src,dst\n1,1.0\n", true, 0, "rows_invalid", "neither fraction nor exponent"},
		{"plus in float", "sku,price,open\na,+1.5,true\n", true, 1, "rows_invalid", "without +: 1.5"},
		{"empty float", "sku,price,open\na,,true\n", true, 1, "rows_invalid", "the field is empty"},
		{"range", "src,dst\n1,9223372036854775808\n", true, 0, "rows_invalid", "ints reach"},
		{"infinity", "sku,price,open\na,inf,true\n", true, 1, "rows_invalid", `got "inf"`},
		{"hexadecimal", "sku,price,open\na,0x1p4,true\n", true, 1, "rows_invalid", `got "0x1p4"`},
		{"overflow", "sku,price,open\na,1e999,true\n", true, 1, "rows_invalid", "floats reach"},
		{"bool", "sku,price,open\na,1,yes\n", true, 1, "rows_invalid", "write true or false"},
		{"not UTF-8", "sku,price,open\n\xe9,1,true\n", true, 1, "rows_invalid", "not UTF-8"},
		{"not base64", "body,at,by,n\nAP8,7,a,7\n", true, 3, "rows_invalid", "in base64 with padding"},
		{"not a time", "body,at,by,n\n,now,a,7\n", true, 3, "rows_invalid", `expected a timestamp, got "now"`},
		{"empty time", "body,at,by,n\n,,a,7\n", true, 3, "rows_invalid", "write the milliseconds"},
		{"null columns", "body,at,by\n", true, 3, "header_invalid", "by: string?, n: int?"},
		{"too few", "src,dst\n1\n", true, 0, "rows_invalid", "line 2: row 1 of edge: expected 2 values, got 1"},
		{"too many", "src,dst\n1,2,3\n", true, 0, "rows_invalid", "expected 2 values, got 3"},
		{"quote", "src,dst\n1,2\n\"3\"x,4\n5,6\n", true, 0, "rows_invalid", "line 3, column 3: not CSV"},
		{"line after quoted newline", "sku,price,open\n\"a\nb\",1,true\nc,1,1\n", true, 1, "rows_invalid", "line 4: row 2"},
		{"too many rows", "src,dst\n" + strings.Repeat("1,2\n", 101), true, 0, "rows_too_many", "more than 100 rows"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ops, err := csvOps(tt.csv, tt.header, 100, tt.relation)
			p, ok := errors.AsType[*Problem](err)
			if !ok {
				t.Fatalf("ops %v, error %v: want a Problem", ops, err)
			}
			if text := p.Text(); p.Code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("code %s\n%s\nwant %s with %q", p.Code, text, tt.code, tt.want)
			}
		})
	}
}

func TestDecodeCSVCountsAllRows(t *testing.T) {
	var b strings.Builder
	b.WriteString("src,dst\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "%d,2\nx,y\n1\n", i)
	}
	_, err := csvOps(b.String(), true, 10_000, 0)
	p, _ := errors.AsType[*Problem](err)
	if p == nil || len(p.Errors) != errorsMax || p.ErrorCount != 3000 {
		t.Fatalf("got %v, want %d errors of 3000", p, errorsMax)
	}
	if p.Errors[0].Line != 3 || p.Errors[2].Line != 4 {
		t.Errorf("lines %d and %d, want 3 and 4", p.Errors[0].Line, p.Errors[2].Line)
	}
}

func TestAppendAnswer(t *testing.T) {
	columns := testProgram().Relations[3].Columns
	got := string(appendAnswer(nil, &QueryResult{Revision: 7, Columns: columns, Rows: []value.Value{
		value.OfBytes("\x00\xff"), value.OfTimestamp(1_796_040_000_000), value.OfNull(), value.OfInt(1),
		value.OfBytes(""), value.OfTimestamp(1 << 60), value.OfString(""), value.OfNull(),
	}}))
	want := `{"revision":7,"columns":[{"name":"body","type":"bytes"},{"name":"at","type":"timestamp"},` +
		`{"name":"by","type":"string","nullable":true},{"name":"n","type":"int","nullable":true}],` +
		`"rows":[["AP8=",1796040000000,null,1],["","1152921504606846976","",null]],"truncated":false}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Rows that share long texts do not make an answer that takes all memory.
func TestAnswerOfLongRows(t *testing.T) {
	long := value.OfString(strings.Repeat("a", 1<<20))
	r := QueryResult{
		Columns: []analysis.Column{{Name: "T", Type: value.String}},
		Rows:    slices.Repeat([]value.Value{long}, 200),
	}
	var answer struct {
		Rows      [][]string
		Truncated bool
	}
	if err := json.Unmarshal(appendAnswer(nil, &r), &answer); err != nil {
		t.Fatal(err)
	}
	if n := len(answer.Rows); n != 64 || !answer.Truncated {
		t.Errorf("%d rows, truncated %v", n, answer.Truncated)
	}
}

func FuzzDecodeTransaction(f *testing.F) {
	f.Add(`{"insert":{"edge":[[1,2],["9007199254740993",-0]]},"delete":{"item":[["\ud83d\ude00",1e3,true]]}}`)
	f.Add(`{"program":"+edge(1, 2)"}`)
	f.Add(`{"insert":{"note":[["AP8=","2026-11-30T12:00:00Z",null,null],["",7,"a","7"]]}}`)
	f.Add(`{"insert":{"edge":[[1,{"a":[null]}],{}]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		program := testProgram()
		d, err := decodeTransaction(program, body)
		if err != nil {
			p, ok := errors.AsType[*Problem](err)
			if !ok || p.Status < 400 || p.Detail == "" {
				t.Fatalf("error %v is no answer", err)
			}
			return
		}
		checkOps(t, program, d.ops)
	})
}

// checkOps fails unless every row has the types of its relation's columns.
func checkOps(t *testing.T, program *analysis.Program, ops []Op) {
	t.Helper()
	inserts := false
	for _, op := range ops {
		id, ok := program.RelationNamed(op.Relation)
		if !ok || len(op.Row) != len(program.Relations[id].Columns) {
			t.Fatalf("op %v does not fit the program", op)
		}
		for i, c := range program.Relations[id].Columns {
			if k := op.Row[i].Kind(); k != c.Type && (k != value.Null || !c.Nullable) {
				t.Fatalf("%v: column %s holds a %s", op, c.Name, op.Row[i].Kind())
			}
		}
		if op.Delete && inserts {
			t.Fatal("a deletion follows an insertion")
		}
		inserts = inserts || !op.Delete
	}
}

func FuzzDecodeCSV(f *testing.F) {
	f.Add("sku,price,open\n\"a\n\"\"b\",1.5,true\n", true)
	f.Add("\ufeffopen,price,sku\nfalse,2e10,x\n", true)
	f.Add("a,1,true\n\xff,x,no\n\"", false)
	f.Fuzz(func(t *testing.T, csv string, header bool) {
		ops, err := csvOps(csv, header, 1000, 1)
		if err != nil {
			if _, ok := errors.AsType[*Problem](loadError(err)); !ok {
				t.Fatalf("error %v is no answer", err)
			}
			return
		}
		checkOps(t, testProgram(), ops)
	})
}

func BenchmarkDecodeTransaction(b *testing.B) {
	program := testProgram()
	for _, rows := range []int{1, 10, 1000} {
		body := `{"insert":{"edge":[` + strings.Repeat(`[123456,7890123],`, rows-1) + `[1,2]]}}`
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := decodeTransaction(program, body); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
