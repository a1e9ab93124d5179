"""What several processes gain: a model of a step's time, and measurements that check it."""
