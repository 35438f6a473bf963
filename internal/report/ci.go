package report

import (
	"fmt"
	"io"
	"strings"

	"tidemark.dev/tidemark/internal/check"
)

var (
	escapeMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// github writes workflow commands, which GitHub shows beside the lines of a pull request.
func (r Report) github(w io.Writer) error {
	for _, f := range r.Counting() {
		file, line := place(f.At)
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,title=%s::%s\n", f.Severity, escapeProperty.Replace(Plain(file)), line,
			escapeProperty.Replace(string(f.Rule)), escapeMessage.Replace(Plain(f.Object+": "+f.Why+" "+f.Fix)))
		if err != nil {
			return err
		}
	}
	return nil
}

// gitlabIssue is one entry of GitLab's Code Quality report.
type gitlabIssue struct {
	Description string         `json:"description"`
	CheckName   string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string      `json:"path"`
	Lines gitlabLines `json:"lines"`
}

type gitlabLines struct {
	Begin int `json:"begin"`
}

func (r Report) gitlab() []gitlabIssue {
	issues := []gitlabIssue{}
	for _, f := range r.Counting() {
		file, line := place(f.At)
		severity := "minor"
		if f.Severity == check.Error {
			severity = "major"
		}
		issues = append(issues, gitlabIssue{
			Description: f.Object + ": " + f.Why + " " + f.Fix, CheckName: string(f.Rule), Fingerprint: f.Fingerprint, Severity: severity,
			Location: gitlabLocation{file, gitlabLines{line}},
		})
	}
	return issues
}
