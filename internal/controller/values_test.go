package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster"
	"tidemark.dev/tidemark/internal/workload"
)

const system = "tidemark-system"

// archive is a historian before an API of its own.
type archive struct {
	*historian
	t   *testing.T
	api client.WithWatch
	// applied and read are the names of ConfigMaps that were written and read.
	applied, read []string
	fails, full   bool
	rv            int
}

func newArchive(t *testing.T, keep bool) *archive {
	a := &archive{t: t}
	a.api = fake.NewClientBuilder().WithObjects(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: v1.LeaseLeader}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("me")},
	}).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			named, is := obj.(interface{ GetName() *string })
			if !is {
				return errors.New("what is applied has no name")
			}
			if a.full {
				return errors.New("no room")
			}
			a.applied = append(a.applied, *named.GetName())
			return c.Apply(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if a.fails {
				return errors.New("no answer")
			}
			if key.Namespace != system {
				a.read = append(a.read, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	a.starts(keep)
	return a
}

// starts begins to lead, as after a restart of the program.
func (a *archive) starts(keep bool) {
	a.t.Helper()
	before := a.historian
	a.historian, _ = newHistorian(a.t)
	a.client, a.reader, a.namespace, a.values, a.leading = a.api, a.api, system, newValues(keep), false
	if before != nil {
		a.index = before.index
	}
	if err := a.load(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	a.holder = "me"
	a.follow(a.index.consumedObjects(), a.clock.Now())
	a.flushes()
}

func (a *archive) flushes() {
	a.t.Helper()
	a.signs.saw(lease("me", a.clock.Now()))
	if !a.flush(a.t.Context()) {
		a.t.Fatal("the history was not written")
	}
}

// applies gives a ConfigMap data that the watch has not shown yet.
func (a *archive) applies(name string, data map[string]string) *cluster.Digested {
	a.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
	err := a.api.Create(a.t.Context(), cm.DeepCopy())
	if err != nil {
		err = a.api.Update(a.t.Context(), cm)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	d := configMap(name, "", nil)
	d.Content = cluster.ContentOfConfigMap(cm)
	a.rv++
	d.ResourceVersion, d.UID = fmt.Sprint(a.rv), "u1"
	return d
}

// sees has the watch show a state.
func (a *archive) sees(d *cluster.Digested) {
	a.index.putObject(d, a.clock.Now())
	a.saw(d.Object, look{at: a.clock.Now(), digested: d})
}

// runs has a workload read a ConfigMap.
func (a *archive) runs(name string, generation int64, configMaps ...string) {
	id, fresh := a.index.putWorkload(deployment, reads(name, generation, configMaps...))
	a.follow(fresh, a.clock.Now())
	a.readBy(a.index.workload(id).uses)
}

// kept gives the values that the API has of a key, the newest first.
func (a *archive) kept(name, key string) string {
	a.t.Helper()
	logs, _, err := cluster.ReadHistory(a.t.Context(), a.api, system)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, l := range logs {
		if l.Object.Name == name {
			return strings.Join(l.Values[key], " ")
		}
	}
	return ""
}

func lease10m() map[string]string { return map[string]string{"LEASE": "10m", "DB_PASSWORD": "hunter2"} }

func TestOldValuesAreKeptWithOneWriteForEachChange(t *testing.T) {
	a := newArchive(t, true)
	a.sees(a.applies("mailer", lease10m()))
	a.runs("mail", 1, "mailer")
	a.flushes()
	for i, want := range []string{"2m 10m", "1m 2m 10m"} {
		a.applied = nil
		a.sees(a.applies("mailer", map[string]string{"LEASE": want[:2], "DB_PASSWORD": fmt.Sprint("hunter3", i)}))
		a.flushes()
		if got := a.kept("mailer", "LEASE"); got != want || len(a.applied) != 1 {
			t.Errorf("kept %q with %d writes, want %q with one", got, len(a.applied), want)
		}
		a.applied = nil
		a.starts(true)
		if len(a.applied) != 0 {
			t.Errorf("a restart wrote %v", a.applied)
		}
	}
	if got := a.kept("mailer", "DB_PASSWORD"); got != "" {
		t.Errorf("kept %q of what looks like a password", got)
	}
	for o, l := range a.logs {
		if l.Values != nil {
			t.Errorf("%s has its values in memory", o)
		}
	}
}

func TestAValueThatWasGoneBeforeItWasReadIsNotKept(t *testing.T) {
	a := newArchive(t, true)
	a.sees(a.applies("mailer", map[string]string{"LEASE": "10m"}))
	a.runs("mail", 1, "mailer")
	a.flushes()
	missed := a.applies("mailer", map[string]string{"LEASE": "5m"})
	late := a.applies("mailer", map[string]string{"LEASE": "2m"})
	a.sees(missed)
	a.flushes()
	if got := a.kept("mailer", "LEASE"); got != "10m" {
		t.Errorf("kept %q, want what was surely there", got)
	}
	a.sees(late)
	a.flushes()
	if got := a.kept("mailer", "LEASE"); got != "2m 10m" {
		t.Errorf("kept %q", got)
	}
}

func TestAValueIsReadAgainWhenTheAPIDidNotAnswer(t *testing.T) {
	a := newArchive(t, true)
	a.sees(a.applies("mailer", lease10m()))
	a.runs("mail", 1, "mailer")
	a.fails = true
	if a.flush(t.Context()) {
		t.Error("took the history for written")
	}
	a.fails = false
	a.flushes()
	if got := a.kept("mailer", "LEASE"); got != "10m" {
		t.Errorf("kept %q", got)
	}
}

func TestAValueIsReadAgainWhenTheHistoryWasNotWritten(t *testing.T) {
	a := newArchive(t, true)
	a.sees(a.applies("mailer", lease10m()))
	a.runs("mail", 1, "mailer")
	a.flushes()
	a.sees(a.applies("mailer", map[string]string{"LEASE": "2m"}))
	a.full = true
	if a.flush(t.Context()) {
		t.Error("took the history for written")
	}
	a.full = false
	a.flushes()
	if got := a.kept("mailer", "LEASE"); got != "2m 10m" {
		t.Errorf("kept %q", got)
	}
}

// TestTheNextLeaderLooksForTheNewestValue restarts where older values of a key are kept, and the newest is not.
func TestTheNextLeaderLooksForTheNewestValue(t *testing.T) {
	a := newArchive(t, true)
	a.sees(a.applies("mailer", lease10m()))
	a.runs("mail", 1, "mailer")
	a.flushes()
	missed := a.applies("mailer", map[string]string{"LEASE": "5m"})
	a.applies("mailer", map[string]string{"LEASE": "2m"})
	a.sees(missed)
	a.flushes()
	a.applies("mailer", map[string]string{"LEASE": "5m"})
	a.starts(true)
	if got := a.kept("mailer", "LEASE"); got != "5m 10m" {
		t.Errorf("kept %q", got)
	}
}

func TestOnlyWhatWorkloadsReadIsKept(t *testing.T) {
	a := newArchive(t, true)
	a.sees(a.applies("mailer", map[string]string{"LEASE": "10m", "HOST": "mx1"}))
	one := reads("mail", 1)
	one.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEASE", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "mailer"}, Key: "LEASE"},
	}}}
	_, fresh := a.index.putWorkload(deployment, one)
	a.follow(fresh, a.clock.Now())
	a.flushes()
	if got := a.kept("mailer", "HOST"); got != "" || a.kept("mailer", "LEASE") != "10m" {
		t.Errorf("kept %q of a key that nobody reads", got)
	}
	a.runs("other", 1, "mailer")
	a.flushes()
	if got := a.kept("mailer", "HOST"); got != "mx1" {
		t.Errorf("kept %q of a key that a second workload reads", got)
	}
}

func TestValuesCanBeSwitchedOff(t *testing.T) {
	a := newArchive(t, true)
	a.sees(a.applies("mailer", lease10m()))
	a.runs("mail", 1, "mailer")
	a.flushes()
	a.starts(false)
	if got := a.kept("mailer", "LEASE"); got != "" {
		t.Errorf("kept %q although it is switched off", got)
	}
	a.read = nil
	a.sees(a.applies("mailer", map[string]string{"LEASE": "2m"}))
	a.flushes()
	if len(a.read) > 0 {
		t.Errorf("read %v", a.read)
	}
}

func TestManyObjectsAreReadByOneList(t *testing.T) {
	a := newArchive(t, true)
	var names []string
	for i := range manyValues + 1 {
		name := fmt.Sprintf("config-%02d", i)
		names = append(names, name)
		a.sees(a.applies(name, map[string]string{"LEASE": name}))
	}
	a.runs("mail", 1, names...)
	a.flushes()
	if len(a.read) > 0 || a.kept("config-07", "LEASE") != "config-07" {
		t.Errorf("read %v one by one, kept %q", a.read, a.kept("config-07", "LEASE"))
	}
}

func TestAChangeWritesOnlyItsShard(t *testing.T) {
	a := newArchive(t, true)
	var names []string
	for i := range 24 {
		data, name := map[string]string{}, fmt.Sprintf("large-%02d", i)
		for k := range 700 {
			data[fmt.Sprintf("setting-%03d", k)] = ""
		}
		names = append(names, name)
		a.sees(a.applies(name, data))
	}
	a.runs("mail", 1, names...)
	a.flushes()
	if a.shards["shop"] < 2 {
		t.Fatalf("the history has %d shards, want several", a.shards["shop"])
	}
	a.applied = nil
	a.sees(a.applies("large-07", map[string]string{"setting-000": "1"}))
	a.flushes()
	if len(a.applied) != 1 {
		t.Errorf("wrote %v, want one", a.applied)
	}
	a.starts(true)
	if got := a.logs[workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "large-23"}]; got == nil || len(got.Versions) != 1 {
		t.Errorf("of the last one is known %v", got)
	}
}

// TestAHistoryOfAnEarlierReleaseGetsItsValues upgrades from a release that kept none.
func TestAHistoryOfAnEarlierReleaseGetsItsValues(t *testing.T) {
	a := newArchive(t, false)
	a.sees(a.applies("mailer", lease10m()))
	a.runs("mail", 1, "mailer")
	a.flushes()
	a.starts(true)
	if got := a.kept("mailer", "LEASE"); got != "10m" {
		t.Errorf("kept %q", got)
	}
}
