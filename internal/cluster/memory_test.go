package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/history"
	"tidemark.dev/tidemark/internal/workload"
)

func lease(holder string, renewed time.Time) *coordinationv1.Lease {
	seconds, at := int32(15), metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at}}
}

func acquired(l *coordinationv1.Lease, at time.Time) *coordinationv1.Lease {
	l.Spec.AcquireTime = new(metav1.NewMicroTime(at))
	return l
}

func unsaved(l *coordinationv1.Lease, since string) *coordinationv1.Lease {
	l.Annotations = map[string]string{v1.AnnotationHistoryUnsaved: since}
	return l
}

func TestLastSign(t *testing.T) {
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		want  time.Time
	}{
		"a leader that renewed just now":   {lease("a", noon.Add(-2*time.Second)), noon.Add(-2 * time.Second)},
		"a leader that cannot write":       {unsaved(lease("a", noon), noon.Add(-time.Hour).Format(time.RFC3339)), noon.Add(-time.Hour)},
		"a leader that says nothing clear": {unsaved(lease("a", noon), "yesterday"), time.Unix(0, 0)},
		"a leader that is silent":          {lease("a", noon.Add(-time.Minute)), noon.Add(-time.Minute)},
		"a leader that gave the lead back": {lease("", noon.Add(-2*time.Second)), noon.Add(-2 * time.Second)},
		"a lease that nobody ever held":    {&coordinationv1.Lease{}, time.Time{}},
		"a leader that is new":             {acquired(lease("b", noon), noon.Add(-HistoryLag+time.Second)), time.Time{}},
		"a leader that has had its time":   {acquired(lease("b", noon), noon.Add(-HistoryLag)), noon},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastSign(tc.lease, noon); !got.Equal(tc.want) {
				t.Errorf("last sign at %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCompleteTo(t *testing.T) {
	seen := noon.Add(-time.Hour)
	log := history.Log{Versions: []history.Version{{
		Seen: seen, UID: "u", ResourceVersion: "7", Content: digest.Content{Version: digest.V1, Present: true},
	}}}
	sign := noon.Add(-10 * time.Minute)
	for name, tc := range map[string]struct {
		log  history.Log
		o    object
		sign time.Time
		want time.Time
	}{
		"no log":                                {history.Log{}, object{known: true, present: true, uid: "u", resourceVersion: "7"}, sign, time.Time{}},
		"the object is as the log ends":         {log, object{known: true, present: true, uid: "u", resourceVersion: "7"}, sign, noon},
		"it was written since":                  {log, object{known: true, present: true, uid: "u", resourceVersion: "8"}, sign, sign.Add(-HistoryLag)},
		"it was made again":                     {log, object{known: true, present: true, uid: "v", resourceVersion: "7"}, sign, sign.Add(-HistoryLag)},
		"it is gone":                            {log, object{known: true}, sign, sign.Add(-HistoryLag)},
		"it could not be read":                  {log, object{}, sign, sign.Add(-HistoryLag)},
		"it was written, and the lease is gone": {log, object{known: true, present: true, uid: "u", resourceVersion: "8"}, time.Time{}, seen.Add(-HistoryLag)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (memory{lastSign: tc.sign}).completeTo(tc.log, &tc.o, noon); !got.Equal(tc.want) {
				t.Errorf("complete to %s, want %s", got, tc.want)
			}
		})
	}
}

func TestASurveyTakesTheContentOfASecretFromTheHistory(t *testing.T) {
	a := newAPI(t, "testdata/shop.yaml")
	o := workload.Object{Kind: workload.Secret, Namespace: "shop", Name: "db"}
	secret := MetadataOf(secretKind)
	if err := a.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "db"}, secret); err != nil {
		t.Fatal(err)
	}
	key, err := digest.NewKey(make([]byte, digest.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	content := digest.OfSecret(key, "shop", "db", map[string][]byte{"password": []byte("hunter2")})
	remembered := history.Version{
		Seen: noon.Add(-time.Hour), UID: string(secret.UID), ResourceVersion: secret.ResourceVersion, Content: content,
	}
	remember(t, a, history.Log{Object: o, Versions: []history.Version{remembered}})

	applied := func() *digest.Content {
		for _, w := range read(t, survey(a)).Workloads {
			if w.Name == "db" {
				return w.Fleet.Objects[0].Applied
			}
		}
		return nil
	}
	if got := applied(); got == nil || !got.Equal(content) {
		t.Errorf("applied is %v, want what is remembered", got)
	}
	// Its metadata is edited: the history does not tell of its state any more, and nobody gave the key away.
	secret.Labels = map[string]string{"edited": "true"}
	if err := a.Client.Update(t.Context(), &corev1.Secret{ObjectMeta: secret.ObjectMeta, Data: map[string][]byte{"password": []byte("hunter2")}}); err != nil {
		t.Fatal(err)
	}
	if got := applied(); got != nil {
		t.Errorf("applied is %v, want unknown", got)
	}
	keySecret := &corev1.Secret{Data: map[string][]byte{v1.DigestKeyEntry: key.Secret()}}
	keySecret.Namespace, keySecret.Name = "tidemark-system", v1.SecretDigestKey
	if err := a.Client.Create(t.Context(), keySecret); err != nil {
		t.Fatal(err)
	}
	if got := applied(); got == nil || !got.Equal(content) {
		t.Errorf("with the key, applied is %v, want what it holds", got)
	}
}

// remember writes logs as the controller does.
func remember(t *testing.T, a *api, logs ...history.Log) {
	t.Helper()
	shards, err := history.Encode(logs)
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{Data: shards[0]}
	cm.Namespace, cm.Name = "tidemark-system", v1.HistoryPrefix+"shop"
	cm.Labels = map[string]string{v1.LabelHistory: "shop"}
	if err := a.Client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
}

// The leader lives, and renews its Lease, and has lost the right to watch Secrets.
func TestHistoryOfAKindThatIsNotWatchedIsCompleteNoLongerThanThat(t *testing.T) {
	since := noon.Add(-time.Hour)
	l := lease("a", noon)
	l.Annotations = map[string]string{v1.AnnotationHistoryBlind: BlindText(map[workload.ObjectKind]time.Time{workload.Secret: since})}
	for name, tc := range map[string]struct {
		statement string
		kind      workload.ObjectKind
		want      time.Time
	}{
		"it is not watched":      {l.Annotations[v1.AnnotationHistoryBlind], workload.Secret, since.Add(-HistoryLag)},
		"another is not watched": {l.Annotations[v1.AnnotationHistoryBlind], workload.ConfigMap, noon.Add(-HistoryLag)},
		"all are":                {"", workload.Secret, noon.Add(-HistoryLag)},
		"it says nothing clear":  {"Secret", workload.ConfigMap, time.Unix(0, 0).Add(-HistoryLag)},
	} {
		t.Run(name, func(t *testing.T) {
			l.Annotations[v1.AnnotationHistoryBlind] = tc.statement
			m := memory{lastSign: lastSign(l, noon), blind: BlindSince(l)}
			log := history.Log{Object: workload.Object{Kind: tc.kind}, Versions: []history.Version{{Seen: since.Add(-time.Hour)}}}
			if got := m.completeTo(log, &object{}, noon); !got.Equal(tc.want) {
				t.Errorf("complete to %v, want %v", got, tc.want)
			}
		})
	}
}

func TestASurveyKnowsForWhichTimesThePodsNodesWereSilent(t *testing.T) {
	silences := history.Silences{"node-a": {{From: noon.Add(-time.Hour), To: noon}}, "node-b": {{From: noon}}}
	data, err := silences.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{Data: data}
	cm.Namespace, cm.Name = "tidemark-system", v1.NodeSilences
	log := history.Log{Object: workload.Object{Kind: workload.ConfigMap, Namespace: "shop", Name: "web"}, Versions: []history.Version{{Seen: noon}}}
	for name, tc := range map[string]struct {
		refuse []string
		want   []history.Span
		remark string
	}{
		"they may be read":     {want: silences["node-a"]},
		"they may not be read": {refuse: []string{"get configmaps"}, remark: v1.NodeSilences},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, "testdata/shop.yaml", tc.refuse...)
			remember(t, a, log)
			if err := a.Client.Create(t.Context(), cm.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			sight := read(t, survey(a))
			found := 0
			for _, w := range sight.Workloads {
				for _, p := range w.Fleet.Pods {
					if p.Node == "node-a" {
						found++
						if !slices.Equal(p.Silences, tc.want) {
							t.Errorf("pod %s: %v, want %v", p.Name, p.Silences, tc.want)
						}
					}
				}
			}
			if found == 0 {
				t.Error("no pod is on node-a")
			}
			if !strings.Contains(strings.Join(sight.Remarks, "\n"), tc.remark) {
				t.Errorf("remarks %q, want one of %s", sight.Remarks, tc.remark)
			}
		})
	}
}
