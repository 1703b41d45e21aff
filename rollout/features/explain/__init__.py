"""A setting or a message is explained. What is known of them is in ``rollout.kubelet.explained``."""
