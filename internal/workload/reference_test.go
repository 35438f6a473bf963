package workload_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/workload"
)

type referenceCase struct {
	spec string
	// refs are the references in order, consumed what they come to per object.
	refs, consumed []string
}

func (c referenceCase) run(t *testing.T) {
	t.Helper()
	refs := workload.References(namespace, template(t, c.spec))
	sameLines(t, "references", refs, describe, c.refs...)
	sameLines(t, "consumed", workload.Consumed(refs), describeUse, c.consumed...)
}

func runAll(t *testing.T, cases map[string]referenceCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	runAll(t, map[string]referenceCase{
		"an env of a ConfigMap reads and requires one key of the data": {
			spec: `{containers: [{name: app, env: [
				{name: EVERY, valueFrom: {configMapKeyRef: {name: settings, key: interval}}}]}]}`,
			refs:     []string{"main/app env configmap/settings keys=interval required=interval as=EVERY"},
			consumed: []string{"configmap/settings env=interval files=- required keys=interval envkeys=interval"},
		},
		"an env of a Secret reads and requires one key": {
			spec: `{containers: [{name: app, env: [
				{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]}]}`,
			refs:     []string{"main/app env secret/db keys=password required=password as=PASSWORD"},
			consumed: []string{"secret/db env=password files=- required keys=password envkeys=password"},
		},
		"an optional env requires neither the object nor the key": {
			spec: `{containers: [{name: app, env: [
				{name: EVERY, valueFrom: {configMapKeyRef: {name: settings, key: interval, optional: true}}}]}]}`,
			refs:     []string{"main/app env configmap/settings keys=interval optional as=EVERY"},
			consumed: []string{"configmap/settings env=interval files=-"},
		},
		"an env that says optional: false is required": {
			spec: `{containers: [{name: app, env: [
				{name: EVERY, valueFrom: {configMapKeyRef: {name: settings, key: interval, optional: false}}}]}]}`,
			refs:     []string{"main/app env configmap/settings keys=interval required=interval as=EVERY"},
			consumed: []string{"configmap/settings env=interval files=- required keys=interval envkeys=interval"},
		},
		"an envFrom reads all of the data and requires the object but no key": {
			spec:     `{containers: [{name: app, envFrom: [{configMapRef: {name: settings}}]}]}`,
			refs:     []string{"main/app envFrom configmap/settings keys=*"},
			consumed: []string{"configmap/settings env=* files=- required"},
		},
		"an envFrom of a Secret keeps its prefix": {
			spec:     `{containers: [{name: app, envFrom: [{prefix: DB_, secretRef: {name: db, optional: true}}]}]}`,
			refs:     []string{"main/app envFrom secret/db keys=* optional prefix=DB_"},
			consumed: []string{"secret/db env=* files=-"},
		},
		"one object under two prefixes is two references and one consumption": {
			spec: `{containers: [{name: app, envFrom: [
				{prefix: A_, configMapRef: {name: settings}}, {prefix: B_, configMapRef: {name: settings}}]}]}`,
			refs: []string{
				"main/app envFrom configmap/settings keys=* prefix=A_",
				"main/app envFrom configmap/settings keys=* prefix=B_",
			},
			consumed: []string{"configmap/settings env=* files=- required"},
		},
		"values, field, resource and file references are no configuration": {
			spec: `{containers: [{name: app, env: [
				{name: PLAIN, value: x}, {name: EMPTY}, {name: NOTHING, valueFrom: {}},
				{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}},
				{name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}},
				{name: FILE, valueFrom: {fileKeyRef: {volumeName: scratch, path: env, key: A}}}]}],
				volumes: [{name: scratch, emptyDir: {}}]}`,
		},
	})
}

func TestContainers(t *testing.T) {
	t.Parallel()
	runAll(t, map[string]referenceCase{
		"init, restartable init and main containers all count": {
			spec: `{
				initContainers: [
					{name: migrate, env: [{name: URL, valueFrom: {secretKeyRef: {name: db, key: url}}}]},
					{name: proxy, restartPolicy: Always, envFrom: [{configMapRef: {name: proxy}}]},
					{name: once, restartPolicy: Never, envFrom: [{configMapRef: {name: once}}]}],
				containers: [{name: app, envFrom: [{configMapRef: {name: settings}}]}]}`,
			refs: []string{
				"init/migrate env secret/db keys=url required=url as=URL",
				"sidecar/proxy envFrom configmap/proxy keys=*",
				"init/once envFrom configmap/once keys=*",
				"main/app envFrom configmap/settings keys=*",
			},
			consumed: []string{
				"configmap/once env=* files=- required",
				"configmap/proxy env=* files=- required",
				"configmap/settings env=* files=- required",
				"secret/db env=url files=- required keys=url envkeys=url",
			},
		},
		"a volume that only an init container mounts counts": {
			spec: `{
				initContainers: [{name: render, volumeMounts: [{name: tpl, mountPath: /tpl, subPath: page.html}]}],
				containers: [{name: app}],
				volumes: [{name: tpl, configMap: {name: templates}}]}`,
			refs:     []string{"init/render volume configmap/templates keys=page.html volume=tpl at=/tpl sub=page.html"},
			consumed: []string{"configmap/templates env=- files=page.html required"},
		},
		"a restart policy on a main container changes nothing": {
			spec:     `{containers: [{name: app, restartPolicy: Always, envFrom: [{configMapRef: {name: settings}}]}]}`,
			refs:     []string{"main/app envFrom configmap/settings keys=*"},
			consumed: []string{"configmap/settings env=* files=- required"},
		},
		"ephemeral containers are uses that do not roll": {
			spec: `{
				containers: [{name: app, volumeMounts: [{name: conf, mountPath: /conf, subPath: a}]}],
				ephemeralContainers: [{name: debug,
					env: [{name: X, valueFrom: {configMapKeyRef: {name: debugging, key: x}}}],
					envFrom: [{secretRef: {name: tools}}],
					volumeMounts: [{name: conf, mountPath: /conf}]}],
				volumes: [{name: conf, configMap: {name: settings}}]}`,
			refs: []string{
				"main/app volume configmap/settings keys=a volume=conf at=/conf sub=a",
				"ephemeral/debug ephemeral secret/tools keys=*",
				"ephemeral/debug ephemeral configmap/debugging keys=x required=x as=X",
				"ephemeral/debug ephemeral configmap/settings keys=* volume=conf at=/conf refreshed",
			},
			consumed: []string{"configmap/settings env=- files=a required"},
		},
		"a volume mounted by an ephemeral container only counts as one that nobody mounts": {
			spec: `{
				containers: [{name: app}],
				ephemeralContainers: [{name: debug, volumeMounts: [{name: conf, mountPath: /conf, subPath: a}]}],
				volumes: [{name: conf, configMap: {name: settings, items: [{key: a, path: a}, {key: b, path: b}]}}]}`,
			refs: []string{
				"ephemeral/debug ephemeral configmap/settings keys=a required=a,b volume=conf at=/conf sub=a",
				"pod volume configmap/settings keys=a,b required=a,b volume=conf",
			},
			consumed: []string{"configmap/settings env=- files=a,b required keys=a,b"},
		},
	})
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	runAll(t, map[string]referenceCase{
		"a volume reads every key and is refreshed in place": {
			spec: `{containers: [{name: app, volumeMounts: [{name: conf, mountPath: /conf}]}],
				volumes: [{name: conf, configMap: {name: settings}}]}`,
			refs:     []string{"main/app volume configmap/settings keys=* volume=conf at=/conf refreshed"},
			consumed: []string{"configmap/settings env=- files=* required refreshed"},
		},
		"items narrow the keys and each is required": {
			spec: `{containers: [{name: app, volumeMounts: [{name: conf, mountPath: /conf}]}],
				volumes: [{name: conf, secret: {secretName: tls, items: [
					{key: tls.key, path: b}, {key: tls.crt, path: a}, {key: tls.crt, path: again}]}}]}`,
			refs:     []string{"main/app volume secret/tls keys=tls.crt,tls.key required=tls.crt,tls.key volume=conf at=/conf refreshed"},
			consumed: []string{"secret/tls env=- files=tls.crt,tls.key required keys=tls.crt,tls.key refreshed"},
		},
		"an optional volume requires neither the object nor its items": {
			spec: `{containers: [{name: app, volumeMounts: [{name: conf, mountPath: /conf}]}],
				volumes: [{name: conf, configMap: {name: settings, optional: true, items: [{key: a, path: a}]}}]}`,
			refs:     []string{"main/app volume configmap/settings keys=a optional volume=conf at=/conf refreshed"},
			consumed: []string{"configmap/settings env=- files=a refreshed"},
		},
		"an empty list of items is no list": {
			spec: `{containers: [{name: app, volumeMounts: [{name: conf, mountPath: /conf}]}],
				volumes: [{name: conf, configMap: {name: settings, items: []}}]}`,
			refs:     []string{"main/app volume configmap/settings keys=* volume=conf at=/conf refreshed"},
			consumed: []string{"configmap/settings env=- files=* required refreshed"},
		},
		"a volume that no container mounts counts per its items, because the pod waits for it all the same": {
			spec: `{containers: [{name: app}], volumes: [
				{name: all, configMap: {name: settings}},
				{name: some, secret: {secretName: db, items: [{key: password, path: p}]}}]}`,
			refs: []string{
				"pod volume configmap/settings keys=* volume=all",
				"pod volume secret/db keys=password required=password volume=some",
			},
			consumed: []string{
				"configmap/settings env=- files=* required",
				"secret/db env=- files=password required keys=password",
			},
		},
		"a mount of a volume that is not there reads nothing": {
			spec: `{containers: [{name: app, volumeMounts: [{name: gone, mountPath: /conf}]}]}`,
		},
		"each source of a projected volume counts by its own items": {
			spec: `{containers: [{name: app, volumeMounts: [{name: all, mountPath: /all}]}],
				volumes: [{name: all, projected: {sources: [
					{configMap: {name: settings}},
					{configMap: {name: extra, optional: true, items: [{key: a, path: extra/a}]}},
					{secret: {name: db, items: [{key: password, path: db/password}]}},
					{downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}}]}`,
			refs: []string{
				"main/app projected configmap/settings keys=* volume=all at=/all refreshed",
				"main/app projected configmap/extra keys=a optional volume=all at=/all refreshed",
				"main/app projected secret/db keys=password required=password volume=all at=/all refreshed",
			},
			consumed: []string{
				"configmap/extra env=- files=a refreshed",
				"configmap/settings env=- files=* required refreshed",
				"secret/db env=- files=password required keys=password refreshed",
			},
		},
		"the cluster's trust and the token that every pod has are no configuration": {
			spec: `{containers: [{name: app, volumeMounts: [{name: kube-api-access, mountPath: /var/run/secrets}]}],
				volumes: [{name: kube-api-access, projected: {sources: [
					{serviceAccountToken: {path: token}},
					{configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}},
					{clusterTrustBundle: {name: corp, path: corp.pem}},
					{podCertificate: {signerName: example.com/signer, keyType: ED25519}}]}}]}`,
		},
		"a Secret that has the name of the cluster's trust is one like any other": {
			spec:     `{containers: [{name: app, envFrom: [{secretRef: {name: kube-root-ca.crt}}]}]}`,
			refs:     []string{"main/app envFrom secret/kube-root-ca.crt keys=*"},
			consumed: []string{"secret/kube-root-ca.crt env=* files=- required"},
		},
		"one object by several ways is consumed as the union of them": {
			spec: `{
				initContainers: [{name: init, env: [{name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}]}],
				containers: [{name: app,
					env: [
						{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}},
						{name: C, valueFrom: {configMapKeyRef: {name: settings, key: c, optional: true}}}],
					volumeMounts: [{name: conf, mountPath: /conf/d, subPath: d}, {name: conf, mountPath: /conf/e, subPath: e}]}],
				volumes: [{name: conf, configMap: {name: settings, optional: true}}]}`,
			refs: []string{
				"init/init env configmap/settings keys=b required=b as=B",
				"main/app env configmap/settings keys=a required=a as=A",
				"main/app env configmap/settings keys=c optional as=C",
				"main/app volume configmap/settings keys=d optional volume=conf at=/conf/d sub=d",
				"main/app volume configmap/settings keys=e optional volume=conf at=/conf/e sub=e",
			},
			consumed: []string{"configmap/settings env=a,b,c files=d,e required keys=a,b envkeys=a,b"},
		},
		"a key that both environment and files require is required of both": {
			spec: `{
				containers: [{name: app,
					env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}],
					volumeMounts: [{name: conf, mountPath: /conf}]}],
				volumes: [{name: conf, configMap: {name: settings, items: [{key: a, path: a}, {key: b, path: b}]}}]}`,
			refs: []string{
				"main/app env configmap/settings keys=a required=a as=A",
				"main/app volume configmap/settings keys=a,b required=a,b volume=conf at=/conf refreshed",
			},
			consumed: []string{"configmap/settings env=a files=a,b required keys=a,b envkeys=a refreshed"},
		},
		"a ConfigMap and a Secret of one name are two objects": {
			spec: `{containers: [{name: app, envFrom: [{configMapRef: {name: same}}, {secretRef: {name: same}}]}]}`,
			refs: []string{
				"main/app envFrom configmap/same keys=*",
				"main/app envFrom secret/same keys=*",
			},
			consumed: []string{
				"configmap/same env=* files=- required",
				"secret/same env=* files=- required",
			},
		},
	})
}

func TestSubPaths(t *testing.T) {
	t.Parallel()
	// mount gives the spec of a pod with one volume, mounted as said.
	mount := func(mount, volume string) string {
		return `{containers: [{name: app, volumeMounts: [{name: v, mountPath: /m, ` + mount + `}]}], volumes: [{name: v, ` + volume + `}]}`
	}
	const (
		plain = `configMap: {name: settings}`
		items = `configMap: {name: settings, items: [
			{key: main, path: conf/app.yaml}, {key: more, path: ./conf//d/more.yaml}, {key: other, path: conf2/app.yaml},
			{key: top, path: top.yaml}]}`
		allOfItems = "required=main,more,other,top"
	)
	for name, c := range map[string]struct{ mount, volume, keys string }{
		"a file is the key of its name":                            {`subPath: a.yaml`, plain, "keys=a.yaml"},
		"trailing slashes do not matter":                           {`subPath: a.yaml//`, plain, "keys=a.yaml"},
		"a leading dot does not matter":                            {`subPath: ./a.yaml`, plain, "keys=a.yaml"},
		"a path below a key's file can only be met by that key":    {`subPath: a.yaml/x`, plain, "keys=a.yaml"},
		"through the kubelet's link it is still the key":           {`subPath: ..data/a.yaml`, plain, "keys=a.yaml"},
		"the kubelet's link itself holds all keys":                 {`subPath: ..data`, plain, "keys=*"},
		"a time-stamped directory of the kubelet's may hold any":   {`subPath: ..2026_01_02/a.yaml`, plain, "keys=*"},
		"a file of items is the key of its path, not of its name":  {`subPath: top.yaml`, items, "keys=top " + allOfItems},
		"a key's name is no path where items say otherwise":        {`subPath: top`, items, "keys=- " + allOfItems},
		"a directory of items is every key under it":               {`subPath: conf`, items, "keys=main,more " + allOfItems},
		"a directory with a trailing slash is the same":            {`subPath: conf/`, items, "keys=main,more " + allOfItems},
		"a directory below a directory is the keys under it":       {`subPath: conf/d`, items, "keys=more " + allOfItems},
		"a file below a directory is one key":                      {`subPath: conf/app.yaml`, items, "keys=main " + allOfItems},
		"a path below an item's file can only be met by that item": {`subPath: top.yaml/x`, items, "keys=top " + allOfItems},
		"items are found through the kubelet's link":               {`subPath: ..data/conf/app.yaml`, items, "keys=main " + allOfItems},
		"an expression may mean any key":                           {`subPathExpr: $(POD_NAME)`, plain, "keys=*"},
		"an expression may mean any item":                          {`subPathExpr: conf/$(FILE)`, items, "keys=main,more,other,top " + allOfItems},
		"a directory of an optional volume requires nothing": {`subPath: conf`,
			`secret: {secretName: s, optional: true, items: [{key: a, path: conf/a}, {key: b, path: b}]}`, "keys=a optional"},
	} {
		t.Run(name, func(t *testing.T) {
			refs := workload.References(namespace, template(t, mount(c.mount, c.volume)))
			if len(refs) != 1 {
				t.Fatalf("got %d references, want 1", len(refs))
			}
			r := refs[0]
			if r.Refreshed {
				t.Error("a sub-path is said to be refreshed in place")
			}
			if r.SubPath == "" {
				t.Error("the reference does not say the sub-path")
			}
			r = workload.Reference{Object: r.Object, Source: r.Source, Keys: r.Keys, Required: r.Required, Optional: r.Optional}
			want := "pod volume " + r.Object.Relative(namespace) + " " + c.keys
			if got := describe(r); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	runAll(t, map[string]referenceCase{
		"a sub-path that is the volume itself is refreshed like it": {
			spec:     mount(`subPath: ./`, plain),
			refs:     []string{"main/app volume configmap/settings keys=* volume=v at=/m sub=./ refreshed"},
			consumed: []string{"configmap/settings env=- files=* required refreshed"},
		},
		"of a projected volume each source gives what it has at the sub-path": {
			spec: mount(`subPath: conf`, `projected: {sources: [
				{configMap: {name: under, items: [{key: a, path: conf/a}]}},
				{configMap: {name: beside, items: [{key: a, path: other/a}]}},
				{configMap: {name: whole}},
				{secret: {name: under, items: [{key: k, path: conf/k}, {key: l, path: l}]}}]}`),
			refs: []string{
				"main/app projected configmap/under keys=a required=a volume=v at=/m sub=conf",
				"main/app projected configmap/beside keys=- required=a volume=v at=/m sub=conf",
				"main/app projected configmap/whole keys=conf volume=v at=/m sub=conf",
				"main/app projected secret/under keys=k required=k,l volume=v at=/m sub=conf",
			},
			consumed: []string{
				"configmap/beside env=- files=- required keys=a",
				"configmap/under env=- files=a required keys=a",
				"configmap/whole env=- files=conf required",
				"secret/under env=- files=k required keys=k,l",
			},
		},
		"one container refreshed and another not makes the consumption refreshed": {
			spec: `{containers: [
				{name: a, volumeMounts: [{name: v, mountPath: /m, subPath: k}]},
				{name: b, volumeMounts: [{name: v, mountPath: /m}]}], volumes: [{name: v, ` + plain + `}]}`,
			refs: []string{
				"main/a volume configmap/settings keys=k volume=v at=/m sub=k",
				"main/b volume configmap/settings keys=* volume=v at=/m refreshed",
			},
			consumed: []string{"configmap/settings env=- files=* required refreshed"},
		},
	})
}

func TestUsesThatDoNotRoll(t *testing.T) {
	t.Parallel()
	driver := func(volume, secret string) referenceCase {
		return referenceCase{
			spec: `{containers: [{name: app, volumeMounts: [{name: v, mountPath: /m, subPath: x}]}, {name: b, volumeMounts: [{name: v, mountPath: /m}]}],
				volumes: [{name: v, ` + volume + `}]}`,
			refs: []string{"pod volumeDriver secret/" + secret + " keys=* volume=v"},
		}
	}
	runAll(t, map[string]referenceCase{
		"image pull secrets are recorded and a pod starts without them": {
			spec: `{containers: [{name: app}], imagePullSecrets: [{name: registry}, {name: ""}]}`,
			refs: []string{"pod imagePullSecret secret/registry keys=* optional"},
		},
		"a pull secret that is also read counts by what is read": {
			spec: `{containers: [{name: app, env: [{name: R, valueFrom: {secretKeyRef: {name: registry, key: .dockerconfigjson}}}]}],
				imagePullSecrets: [{name: registry}]}`,
			refs: []string{
				"main/app env secret/registry keys=.dockerconfigjson required=.dockerconfigjson as=R",
				"pod imagePullSecret secret/registry keys=* optional",
			},
			consumed: []string{"secret/registry env=.dockerconfigjson files=- required keys=.dockerconfigjson envkeys=.dockerconfigjson"},
		},
		"the Secret of a csi driver, once however often mounted": driver(`csi: {driver: secrets-store.csi.k8s.io, nodePublishSecretRef: {name: vault}}`, "vault"),
		"the Secret of cephfs":     driver(`cephfs: {monitors: [m], secretRef: {name: ceph}}`, "ceph"),
		"the Secret of cinder":     driver(`cinder: {volumeID: x, secretRef: {name: cinder}}`, "cinder"),
		"the Secret of flexVolume": driver(`flexVolume: {driver: d, secretRef: {name: flex}}`, "flex"),
		"the Secret of iscsi":      driver(`iscsi: {targetPortal: p, iqn: i, lun: 0, secretRef: {name: chap}}`, "chap"),
		"the Secret of rbd":        driver(`rbd: {monitors: [m], image: i, secretRef: {name: rbd}}`, "rbd"),
		"the Secret of scaleIO":    driver(`scaleIO: {gateway: g, system: s, secretRef: {name: scale}}`, "scale"),
		"the Secret of storageos":  driver(`storageos: {volumeName: v, secretRef: {name: storage}}`, "storage"),
		"the Secret of azureFile":  driver(`azureFile: {secretName: azure, shareName: s}`, "azure"),
		"drivers without a Secret use none": {
			spec: `{containers: [{name: app}], volumes: [{name: a, csi: {driver: d}}, {name: b, cephfs: {monitors: [m]}},
				{name: c, azureFile: {secretName: "", shareName: s}}, {name: d, persistentVolumeClaim: {claimName: c}},
				{name: e, hostPath: {path: /}}, {name: f, emptyDir: {}}, {name: g, image: {reference: r}}]}`,
		},
	})
}

func TestOddTemplates(t *testing.T) {
	t.Parallel()
	runAll(t, map[string]referenceCase{
		"a template without containers uses nothing": {spec: `{}`},
		"nulls and empty entries use nothing": {
			spec: `{containers: [null, {envFrom: [null, {}], env: [null, {valueFrom: {}}], volumeMounts: [null, {}]}], initContainers: [null],
				ephemeralContainers: [null, {}], imagePullSecrets: [null],
				volumes: [null, {name: a, projected: {sources: [null, {}]}}, {name: b, configMap: {}}, {name: c, secret: {}}, {name: d, projected: null}]}`,
		},
		"names that no object can have are left out": {
			spec: `{containers: [{name: app, envFrom: [
				{configMapRef: {name: "other/settings"}}, {configMapRef: {name: "a,b=c"}}, {secretRef: {name: "../x"}}, {secretRef: {name: Upper}}]}],
				volumes: [{name: v, configMap: {name: kube-system/settings}}]}`,
		},
		"a container without a name reads like any other": {
			spec:     `{containers: [{envFrom: [{configMapRef: {name: settings}}]}]}`,
			refs:     []string{"pod envFrom configmap/settings keys=*"},
			consumed: []string{"configmap/settings env=* files=- required"},
		},
	})
	t.Run("a template that is nil uses nothing", func(t *testing.T) {
		if refs := workload.References(namespace, nil); refs != nil {
			t.Errorf("got %v", refs)
		}
	})
}

func TestReferencesLeaveTheTemplateAsItIs(t *testing.T) {
	t.Parallel()
	const spec = `{containers: [{name: app, volumeMounts: [{name: v, mountPath: /m}]}],
		volumes: [{name: v, configMap: {name: settings, items: [{key: b, path: b}, {key: a, path: a}]}}]}`
	got := template(t, spec)
	workload.References(namespace, got)
	want := template(t, spec)
	if g, w := got.String(), want.String(); g != w {
		t.Errorf("got %s\nwant %s", g, w)
	}
}

func TestEverySourceSaysWhetherItRolls(t *testing.T) {
	t.Parallel()
	for source, want := range map[workload.Source]bool{
		workload.SourceEnv: true, workload.SourceEnvFrom: true, workload.SourceVolume: true, workload.SourceProjected: true,
		workload.SourceNamed: true, workload.SourcePullSecret: false, workload.SourceEphemeral: false, workload.SourceVolumeDriver: false,
	} {
		if got := source.Rolls(); got != want {
			t.Errorf("%s rolls: got %v, want %v", source, got, want)
		}
	}
}

// BenchmarkConsumed walks a template with a thousand keys of one object.
func BenchmarkConsumed(b *testing.B) {
	var tpl corev1.PodTemplateSpec
	c := corev1.Container{Name: "app"}
	for i := range 1000 {
		c.Env = append(c.Env, corev1.EnvVar{Name: "E", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: string(rune('a'+i%26)) + string(rune('a'+i/26)),
		}}})
	}
	tpl.Spec.Containers = []corev1.Container{c}
	b.ReportAllocs()
	for b.Loop() {
		workload.Consumed(workload.References(namespace, &tpl))
	}
}
