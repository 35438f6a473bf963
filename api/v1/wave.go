package v1

// Annotations of Wave (wave.pusher.com) that Tidemark honours, as observed in Wave 0.11, so that its users can switch without touching a manifest.
const (
	// WaveOptIn, when "true" on a workload without a mode of Tidemark's, means mode roll.
	WaveOptIn = "wave.pusher.com/update-on-config-change"
	// WaveExtraConfigMaps is read like [AnnotationExtraConfigMaps].
	WaveExtraConfigMaps = "wave.pusher.com/extra-configmaps"
	// WaveExtraSecrets is read like [AnnotationExtraSecrets].
	WaveExtraSecrets = "wave.pusher.com/extra-secrets"
)
