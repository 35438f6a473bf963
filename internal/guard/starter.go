package guard

import (
	"net/url"
	"regexp"
	"strings"
)

// system is a CI system, as far as its variables say who started a job and where it runs.
type system struct {
	starter string
	job     func(getenv func(string) string) string
}

// systems in the order in which they are asked.
var systems = []system{
	// https://docs.github.com/en/actions/reference/workflows-and-actions/variables
	{"GITHUB_TRIGGERING_ACTOR", func(getenv func(string) string) string {
		server, repository, run := getenv("GITHUB_SERVER_URL"), getenv("GITHUB_REPOSITORY"), getenv("GITHUB_RUN_ID")
		if server == "" || repository == "" || run == "" {
			return ""
		}
		link := server + "/" + repository + "/actions/runs/" + run
		if attempt := getenv("GITHUB_RUN_ATTEMPT"); attempt != "" {
			link += "/attempts/" + attempt
		}
		return link
	}},
	// https://docs.gitlab.com/ci/variables/predefined_variables/
	{"GITLAB_USER_LOGIN", variable("CI_JOB_URL")},
	// https://buildkite.com/docs/pipelines/configure/environment-variables
	{"BUILDKITE_BUILD_CREATOR_EMAIL", func(getenv func(string) string) string {
		link := getenv("BUILDKITE_BUILD_URL")
		if job := getenv("BUILDKITE_JOB_ID"); link != "" && job != "" {
			link += "#" + job
		}
		return link
	}},
	// https://circleci.com/docs/variables/
	{"CIRCLE_USERNAME", variable("CIRCLE_BUILD_URL")},
	// https://plugins.jenkins.io/build-user-vars-plugin/, and Jenkins' own BUILD_URL
	{"BUILD_USER_ID", variable("BUILD_URL")},
}

func variable(name string) func(func(string) string) string {
	return func(getenv func(string) string) string { return getenv(name) }
}

// program matches users that are no person: nobody reads what is sent to them.
var program = regexp.MustCompile(`(?i)\[bot\]|(^|[-_.+])bot($|[-_@\d])|^(github-actions|web-flow|dependabot|renovate|timer|scmchange|upstream|remoterequest)($|@)`)

// Starter is who started the job that this program runs in, by the variables of the CI system; "" where they name nobody, or
// a program.
func Starter(getenv func(string) string) string {
	for _, s := range systems {
		if who := line(getenv(s.starter)); who != "" {
			if program.MatchString(who) {
				return ""
			}
			return who
		}
	}
	return ""
}

// Job is a link to the job that this program runs in, by the variables of the CI system; "" where they tell none. A name and
// password in it are left out.
func Job(getenv func(string) string) string {
	for _, s := range systems {
		if link := line(s.job(getenv)); link != "" {
			return Link(link)
		}
	}
	return ""
}

// Link is a link without the name and password that may be in it; "" for what is none.
func Link(text string) string {
	u, err := url.Parse(line(text))
	if err != nil || u.Host == "" {
		return ""
	}
	u.User = nil
	return u.String()
}

// maxLine bounds what is noted.
const maxLine = 1024

// line is the first line of a text.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(text[:min(len(text), maxLine)])
}
