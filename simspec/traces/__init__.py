"""The record of what real models did: its files, their strict reader, its index for replay."""
