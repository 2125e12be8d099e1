package host_test

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/host"
)

// A demo that is refused leaves no directory behind.
func TestDemoCleansUp(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"expected 0, or 0.001 to 1000", []string{"--writes-per-second", "NaN"}},
		{"expected 0, or 0.001 to 1000", []string{"--writes-per-second", "1e-10"}},
		{"expected host:port", []string{"--listen", "foo"}},
		{"give another address with --listen", []string{"--listen", taken.Addr().String()}},
	} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		var out bytes.Buffer
		host.Report(&out, run(t.Context(), &out, append([]string{"demo"}, c.args...)...))
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: left %v, %v\n%s", c.args, left, err, &out)
		}
	}
}

func TestDemoRefusesForeignData(t *testing.T) {
	s := startServer(t)
	dir := s.dir
	_, err := s.running.Service().Apply(t.Context(), "demo",
		"+stock(item: string)\nseed +stock(\"tea\")\n", admin.ApplyOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	var out bytes.Buffer
	code := host.Report(&out, run(t.Context(), &out, "demo", "--data", dir))
	if code != 1 || !strings.Contains(out.String(), dir+" holds another graph \"demo\"") ||
		!strings.Contains(out.String(), "--data") {
		t.Errorf("exit code %d\n%s", code, &out)
	}
}

func TestServeNamesTheAddressThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, which := range []string{"data", "admin"} {
		listen := map[string]string{"data": "127.0.0.1:0", "admin": "127.0.0.1:0"}
		listen[which] = taken.Addr().String()
		var out bytes.Buffer
		code := host.Report(&out, run(t.Context(), &out, "serve", "--data-dir", t.TempDir(),
			"--data-listen", listen["data"], "--admin-listen", listen["admin"]))
		if want := "with --" + which + "-listen or HEDDLE_"; code != 1 ||
			!strings.Contains(out.String(), want) {
			t.Errorf("exit code %d\n%s\nwant %q", code, &out, want)
		}
	}
}
