package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestDefaultIsValid(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.DataListen != "127.0.0.1:4443" || c.QueueTransactions != 1024 || c.LoadBytes != 256<<20 ||
		c.LingerKey != 2*time.Second || c.Server != "http://127.0.0.1:4444" {
		t.Errorf("defaults: %v", c)
	}
}

// TestFields: every field can be written in every source, and its text is read
// as the same value again.
func TestFields(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags, GroupServer, GroupLimits, GroupClient)
	for _, f := range fields {
		c := Default()
		if err := f.set(&c, f.text(&c)); err != nil {
			t.Errorf("%s: own text %q is not read: %v", f.Name, f.text(&c), err)
		}
		if f.Help == "" || f.Group == "" || flags.Lookup(f.Flag()) == nil {
			t.Errorf("%s has no group, help or flag", f.Name)
		}
		if f.kind != stringType && (f.min == "" || f.max == "") {
			t.Errorf("%s has no limits", f.Name)
		}
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heddle.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, file string, environ []string, args ...string) (Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(flags, GroupServer, GroupLimits, GroupClient)
	if file != "" {
		environ = append(environ, "HEDDLE_CONFIG="+file)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(flags, environ)
}

func TestOrder(t *testing.T) {
	file := write(t, `
data_dir = "/file"
admin_listen = "[::1]:1"
log_level = "debug"
body_bytes = 2048 # bytes
load_bytes = "2 MiB"
query_deadline = "250ms"
query_rows = 7
`)
	c, err := load(t, file,
		[]string{"HEDDLE_DATA_DIR=/environment", "HEDDLE_LOG_LEVEL=warn", "HEDDLE_QUERY_ROWS=", "OTHER=1"},
		"--log-level", "error", "--linger-key=0s")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, value, source string }{
		{"data_dir", "/environment", "environment HEDDLE_DATA_DIR"},
		{"admin_listen", "[::1]:1", "file " + file + ", line 3"},
		{"log_level", "error", "flag --log-level"},
		{"log_format", "text", "default"},
		{"body_bytes", "2KiB", "file " + file + ", line 5"},
		{"load_bytes", "2MiB", "file " + file + ", line 6"},
		{"query_deadline", "250ms", "file " + file + ", line 7"},
		{"query_rows", "7", "file " + file + ", line 8"},
		{"linger_key", "0s", "flag --linger-key"},
	} {
		for _, f := range fields {
			if f.Name == test.name && (f.text(&c) != test.value || c.Source(f.Name) != test.source) {
				t.Errorf("%s is %s of %s, want %s of %s", f.Name, f.text(&c), c.Source(f.Name), test.value, test.source)
			}
		}
	}
}

// TestFlagOverVariable: --config wins over HEDDLE_CONFIG.
func TestFlagOverVariable(t *testing.T) {
	c, err := load(t, "/nowhere/heddle.toml", nil, "--config", write(t, `query_rows = 8`))
	if err != nil || c.QueryRows != 8 {
		t.Errorf("%d rows, %v", c.QueryRows, err)
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		name, file string
		environ    []string
		args       []string
		want       []string // each a line of the error; FILE stands for the file
	}{
		{
			name: "all at once", file: "query_rows = 0\nlog_level = \"loud\"\n\ndata_lisen = \"127.0.0.1:1\"\nbatch_transactions = \"9\"\n",
			environ: []string{"HEDDLE_LOAD_BYTES=1 PB", "HEDDLE_SESSIONS_MAX=many", "HEDDLE_KEY=short"},
			args:    []string{"--admin-listen=0.0.0.0:80", "--data-dir="},
			want: []string{
				`data_lisen: (file FILE, line 4) is no setting; did you mean data_listen?`,
				`batch_transactions: "9" (file FILE, line 5) is a string of TOML: expected a whole number from 1 to 4096`,
				`load_bytes: "1 PB" (environment HEDDLE_LOAD_BYTES) cannot be read: expected a number of bytes from 1MiB to 1GiB, such as 256MiB`,
				`sessions_max: "many" (environment HEDDLE_SESSIONS_MAX) cannot be read: expected a whole number from 1 to 1000000`,
				`data_dir: (flag --data-dir): expected a text that is not empty`,
				`admin_listen: "0.0.0.0:80" (flag --admin-listen): expected host:port, the host localhost or an address of loopback (127.0.0.1, [::1]), the port 0 to 65535`,
				`log_level: "loud" (file FILE, line 2): expected one of debug, info, warn, error`,
				`query_rows: "0" (file FILE, line 1): expected a whole number from 1 to 1000000`,
				`key: "***" (environment HEDDLE_KEY): expected at least 16 printable ASCII characters without spaces, or empty`,
			},
		},
		{
			name: "syntax", file: "query_rows = 5\nlog_level = \"info\nx = 1",
			want: []string{`settings file FILE, line 2: strings cannot contain newlines`},
		},
		{
			name: "twice", file: "query_rows = 5\nquery_rows = 6\n",
			want: []string{`settings file FILE, line 2: Key 'query_rows' has already been defined.`},
		},
		{
			name: "kinds", file: "data_dir = 5\nlog_format = [\"text\"]\nquery_deadline = 5\nquery_rows = 1.5\nsessions_max = true\n[limits]\nx = 1\n[body_bytes]\ny = 1\n[[load_bytes]]\n",
			want: []string{
				`data_dir: "5" (file FILE, line 1) is an integer of TOML: expected a text that is not empty`,
				`log_format: "[text]" (file FILE, line 2) is an array of TOML: expected one of text, json`,
				`query_deadline: "5" (file FILE, line 3) is an integer of TOML: expected a duration from 10ms to 1m, such as 5s`,
				`query_rows: "1.5" (file FILE, line 4) is a float of TOML: expected a whole number from 1 to 1000000`,
				`sessions_max: "true" (file FILE, line 5) is a boolean of TOML: expected a whole number from 1 to 1000000`,
				`limits: (file FILE, line 6) is no setting`,
				`body_bytes: "map[y:1]" (file FILE, line 8) is a table of TOML: expected a number of bytes from 1KiB to 64MiB, such as 1MiB`,
				`load_bytes: "[map[]]" (file FILE, line 10) is an array of TOML: expected a number of bytes from 1MiB to 1GiB, such as 256MiB`,
			},
		},
		{
			name: "secrets", file: "admin_key = \"very secret\"\n", environ: []string{"HEDDLE_KEY=also secret, yes"},
			want: []string{
				`admin_key: "***" (file FILE, line 1): expected at least 16 printable ASCII characters without spaces, or empty`,
				`key: "***" (environment HEDDLE_KEY): expected at least 16 printable ASCII characters without spaces, or empty`,
			},
		},
		{
			name: "same address", args: []string{"--admin-listen=127.0.0.1:4443"},
			want: []string{`admin_listen: "127.0.0.1:4443" (flag --admin-listen) is data_listen as well: expected another port, or port 0`},
		},
		{
			name: "url", environ: []string{"HEDDLE_SERVER=localhost:4444"},
			want: []string{`server: "localhost:4444" (environment HEDDLE_SERVER): expected a URL of http or https with a host and nothing behind it`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := ""
			if test.file != "" {
				file = write(t, test.file)
			}
			_, err := load(t, file, test.environ, test.args...)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), file, "FILE")
			if file == "" {
				got = err.Error()
			}
			if want := strings.Join(test.want, "\n"); got != want {
				t.Errorf("error\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestFileErrors(t *testing.T) {
	if _, err := load(t, "/nowhere/heddle.toml", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := load(t, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	c := Default()
	c.AdminKey, c.Key = "the-admins-secret", "the-clients-secret"
	for _, text := range []string{
		c.String(), fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), c.LogValue().String(),
	} {
		if strings.Contains(text, "secret") || !strings.Contains(text, "***") {
			t.Errorf("secrets show: %s", text)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:0": true, "127.9.9.9:65535": true, "[::1]:80": true, "localhost:1": true,
		"": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "192.168.0.1:80": false, "example.org:80": false,
		"127.0.0.1": false, "127.0.0.1:": false, "127.0.0.1:65536": false, "127.0.0.1:http": false, "127.0.0.1:-1": false,
	} {
		if isLoopback(address) != want {
			t.Errorf("isLoopback(%q) is not %v", address, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "0B": 0, "1": 1, "1B": 1, "1KiB": 1024, "3 MiB": 3 << 20, "1TiB": 1 << 40, "8388607TiB": 8388607 << 40,
		"": -1, "KiB": -1, "-1": -1, "+1": -1, "1.5KiB": -1, "1KB": -1, "1kib": -1, "1  KiB": -1, "8388608TiB": -1, "0x10": -1,
	} {
		got, err := parseBytes(text)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for b, want := range map[Bytes]string{0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1536B", 256 << 20: "256MiB"} {
		if b.String() != want {
			t.Errorf("%d is spelled %s, want %s", int64(b), b, want)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"0", "1KiB", "3 MiB", "-1", "9223372036854775807", "9007199254740992KiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := parseBytes(s)
		if err != nil {
			return
		}
		if again, err := parseBytes(b.String()); err != nil || again != b || b < 0 {
			t.Errorf("%q is %d, spelled %s, read as %d, %v", s, b, b, again, err)
		}
	})
}

func FuzzLoadFile(f *testing.F) {
	f.Add("query_rows = 5\n[a]\nb = 1\n[[c]]\n")
	f.Add("data_dir = \"\"\"\nx\"\"\"\n'a b'=1979-05-27\na.b.c = {x = [1, {}]}")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "f.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(nil, []string{"HEDDLE_CONFIG=" + path})
		if err == nil && c.Validate() != nil {
			t.Errorf("loaded without an error and not valid: %v", c.Validate())
		}
	})
}

func TestMisspelt(t *testing.T) {
	got := Misspelt([]string{
		"HEDDLE_QUEU_TRANSACTIONS=1", "HEDDLE_PORT_4443_TCP_ADDR=1", "HEDDLE_CONFIG=x", "HEDDLE_KEY=y", "PATH=z",
	})
	want := "environment HEDDLE_QUEU_TRANSACTIONS is no setting; did you mean queue_transactions?"
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAdminKey(t *testing.T) {
	c := Default()
	c.DataDir = filepath.Join(t.TempDir(), "a", "b")
	key, err := EnsureAdminKey(&c)
	if err != nil || !isKey(key) || len(key) != 43 {
		t.Fatalf("made %q, %v", key, err)
	}
	again, err := EnsureAdminKey(&c)
	if err != nil || again != key {
		t.Errorf("second start: %q, %v", again, err)
	}
	path := AdminKeyFile(c.DataDir)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureAdminKey(&c); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("file that others may read: %v", err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("short\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureAdminKey(&c); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("file without a key: %v", err)
	}
	c.AdminKey = "given-by-the-operator"
	if key, err := EnsureAdminKey(&c); err != nil || key != c.AdminKey {
		t.Errorf("given key: %q, %v", key, err)
	}
}
