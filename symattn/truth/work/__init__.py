"""Work on many cores and machines: a job cut into blocks, done by any executor, the same bits however it is done."""
