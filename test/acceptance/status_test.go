package acceptance

import (
	"fmt"
	"strings"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/lab/client/labtest"
	"tidemark.dev/tidemark/lab/wire"
)

// verdict waits until status gives a verdict on a workload, and returns all that it says then.
func (s *scene) verdict(workload, want string, flags ...string) v1.Fleet {
	s.t.Helper()
	var status v1.Fleet
	s.eventually("status of "+workload+" to be "+want, func() error {
		var err error
		if status, err = s.Status(s.t.Context(), workload, flags...); err != nil {
			return err
		}
		if status.Verdict != want {
			return fmt.Errorf("it is %s: %s", status.Verdict, status.Reason)
		}
		return nil
	})
	if status.Verdict != "in-step" && status.Reason == "" {
		s.t.Errorf("status of %s is %s without a reason", workload, want)
	}
	return status
}

// why waits until the reason that status gives for a verdict that is not in-step contains the text.
func (s *scene) why(workload, text string, flags ...string) v1.Fleet {
	s.t.Helper()
	var status v1.Fleet
	s.eventually(fmt.Sprintf("status of %s to say %q", workload, text), func() error {
		var err error
		if status, err = s.Status(s.t.Context(), workload, flags...); err != nil {
			return err
		}
		if status.InStep || !strings.Contains(status.Reason, text) {
			return fmt.Errorf("it is %s: %s", status.Verdict, status.Reason)
		}
		return nil
	})
	return status
}

// counts adds up the pods that run the applied version, and those behind it.
func counts(f v1.Fleet) (applied, behind int) {
	for _, v := range f.Versions {
		if v.Applied {
			applied += v.Pods
		}
	}
	return applied, f.Behind
}

// agreesWithRecord compares what status says that each pod loaded of its one object with the lab's record: pods of which it
// names one digest loaded one value, pods of which it names two digests loaded two.
func (s *scene) agreesWithRecord(f v1.Fleet, loaded func(wire.Start) string) {
	s.t.Helper()
	running, err := s.Running(s.t.Context())
	s.must(err)
	values := map[string]string{} // by pod
	for _, start := range running {
		values[start.Pod] = loaded(start)
	}
	valueOf, digestOf := map[string]string{}, map[string]string{}
	for _, pod := range f.Pods {
		for _, c := range pod.Containers {
			for _, l := range c.Loaded {
				value, digest := values[pod.Name], l.Digest
				if digest == "" {
					continue
				}
				if before, ok := valueOf[digest]; ok && before != value {
					s.t.Errorf("status says that %s loaded %s, which stands for %q; by the record it loaded %q", pod.Name, digest, before, value)
				}
				if before, ok := digestOf[value]; ok && before != digest {
					s.t.Errorf("status gives both %s and %s to pods that loaded %q", before, digest, value)
				}
				valueOf[digest], digestOf[value] = value, digest
			}
		}
	}
	if err := labtest.Equal("the number of versions that status names", len(valueOf), len(distinct(values))); err != nil {
		s.t.Error(err)
	}
}

func distinct(values map[string]string) map[string]bool {
	out := map[string]bool{}
	for _, v := range values {
		out[v] = true
	}
	return out
}
