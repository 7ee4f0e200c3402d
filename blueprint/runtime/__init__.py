"""Programs that run beside a cluster: the image gate, and the plugin by which Argo CD reads verified trees."""
