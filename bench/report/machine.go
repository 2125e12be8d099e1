package report

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine is where a bench ran. It names no host: a report may be published.
type Machine struct {
	CPU    string `json:"cpu"`   // the model, "unknown" where the system does not say
	Cores  int    `json:"cores"` // that this process may use
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
}

func thisMachine() Machine {
	m := Machine{
		CPU: "unknown", Cores: runtime.NumCPU(), Kernel: runtime.GOOS, Go: runtime.Version(),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = cpuModel(string(text))
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = runtime.GOOS + " " + strings.TrimSpace(string(text))
	}
	return m
}

// cpuModel finds the first model name in the text of /proc/cpuinfo.
func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		name, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// commit returns the revision that the binary was built from, with "+dirty" if
// it was not clean. `go run` and builds without a version stamp fall back on
// the working directory, which is then the source tree.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		var revision, modified string
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				modified = s.Value
			}
		}
		if revision != "" {
			return mark(revision, modified == "true")
		}
	}
	out, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	// Files that git does not track cannot have gone into the build unseen for
	// long: only changes of tracked ones count.
	dirty := exec.Command("git", "diff", "--quiet", "HEAD").Run() != nil
	return mark(strings.TrimSpace(string(out)), dirty)
}

func mark(revision string, dirty bool) string {
	revision = revision[:min(len(revision), 12)]
	if dirty {
		return revision + "+dirty"
	}
	return revision
}
