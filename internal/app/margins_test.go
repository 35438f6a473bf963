package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/controller"
)

func TestMarginsReachTheLookAtFleetsAndTheLease(t *testing.T) {
	o := Defaults()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse([]string{"--refresh-lag=7m", "--read-lag=4s", "--clock-skew=3s"}); err != nil {
		t.Fatal(err)
	}
	want := Defaults().Margins
	want.RefreshLag, want.ReadLag, want.Skew = 7*time.Minute, 4*time.Second, 3*time.Second
	if diff := cmp.Diff(want, o.survey(&cluster.Connection{}, nil).Settings); diff != "" {
		t.Errorf("margins of the look (-want +got):\n%s", diff)
	}
	labels := map[string]string{v1.LabelRefreshLag: "7m0s", v1.LabelReadLag: "4s", v1.LabelClockSkew: "3s"}
	if diff := cmp.Diff(labels, managerOptions(o, nil, nil, &controller.Watches{}).LeaderElectionLabels); diff != "" {
		t.Errorf("labels of the Lease (-want +got):\n%s", diff)
	}
	for _, flag := range []string{"--refresh-lag=0s", "--read-lag=0s", "--clock-skew=-1s"} {
		o := Defaults()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(flags)
		if err := flags.Parse([]string{flag}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.validate(); err == nil {
			t.Errorf("%s is taken", flag)
		}
	}
}
