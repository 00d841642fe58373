% Octave: labels can be computed with, names survive.
folder = argv(){end};
s = load(fullfile(folder, "emotions.mat"));
assert(isa(s.partial_labels, "double") && isa(s.data, "double"));
y = s.partial_labels * 0.5 + s.confidences * ones(columns(s.confidences), 1) * 0;
o = load(fullfile(folder, "odd", "matlab", "odd.mat"));
names = cellfun(@(bytes) char(bytes), o.label_names_utf8, "UniformOutput", false);
assert(any(strcmp(names, "Übung")) && any(strcmp(names, "日本")));
printf("labels are double; %s is called %s\n", "label 3", names{3});
