"""Angola's texts, one file each: the articles of Decreto Executivo 261/22."""
